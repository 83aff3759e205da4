// Package shared measures limiters that share their state in Redis.
package shared

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
	ulule "github.com/ulule/limiter/v3"
	uluredis "github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/bench/internal/load"
	"github.com/headgate/headgate/bench/internal/report"
	"github.com/headgate/headgate/redisstore"
	"github.com/headgate/headgate/redisstore/redistest"
)

// The limit of every contender, for each key.
const (
	count  = 100
	period = time.Second
)

// connections is how many each contender has.
const connections = 64

// A contender is one way to decide, or to do less than that.
type contender struct {
	name    string
	kind    report.Kind
	open    func(tb testing.TB, client redis.UniversalClient) (load.Decide, error)
	permits load.Permits // nil = it limits nothing
}

// headgateWith is Headgate under the limit of an algorithm.
func headgateWith(name string, algorithm headgate.Algorithm, cfg redisstore.Config) contender {
	limit := headgate.Limit{Algorithm: algorithm, Count: count, Period: period}
	permits := load.Windows(count, period)
	if algorithm == headgate.TokenBucket {
		permits = load.Bucket(count, count, period)
	}
	return contender{name: name, kind: report.Headgate, permits: permits, open: func(tb testing.TB, client redis.UniversalClient) (load.Decide, error) {
		store, err := openStore(tb, client, cfg)
		if err != nil {
			return nil, err
		}
		return take(store, limit), nil
	}}
}

func openStore(tb testing.TB, client redis.UniversalClient, cfg redisstore.Config) (*redisstore.Store, error) {
	store, err := redisstore.New(client, cfg)
	if err == nil {
		tb.Cleanup(func() { _ = store.Close() })
	}
	return store, err
}

// take decides by a store.
func take(store headgate.Store, limit headgate.Limit) load.Decide {
	return func(ctx context.Context, key string) (bool, error) {
		d, err := store.Take(ctx, headgate.Charge{Key: key, Cost: 1, Limit: limit})
		return d.Allowed, err
	}
}

func ours() contender {
	return headgateWith(string(report.Headgate), headgate.TokenBucket, redisstore.Config{})
}

func ululeLimiter() contender {
	return contender{name: "ulule/limiter", kind: report.Peer, permits: load.Windows(count, period), open: func(_ testing.TB, client redis.UniversalClient) (load.Decide, error) {
		store, err := uluredis.NewStoreWithOptions(client, ulule.StoreOptions{Prefix: "ulule"})
		if err != nil {
			return nil, err
		}
		l := ulule.New(store, ulule.Rate{Period: period, Limit: count})
		return func(ctx context.Context, key string) (bool, error) {
			c, err := l.Get(ctx, key)
			return err == nil && !c.Reached, err
		}, nil
	}}
}

func redisRate() contender {
	return contender{name: "redis_rate", kind: report.Peer, permits: load.Bucket(count, count, period), open: func(_ testing.TB, client redis.UniversalClient) (load.Decide, error) {
		l := redis_rate.NewLimiter(client)
		limit := redis_rate.Limit{Rate: count, Burst: count, Period: period}
		return func(ctx context.Context, key string) (bool, error) {
			r, err := l.Allow(ctx, key, limit)
			return err == nil && r.Allowed > 0, err
		}, nil
	}}
}

func throttledLimiter() contender {
	return contender{name: "throttled", kind: report.Peer, permits: load.Bucket(count, count, period), open: func(_ testing.TB, client redis.UniversalClient) (load.Decide, error) {
		store, err := goredisstore.NewCtx(client, "throttled")
		if err != nil {
			return nil, err
		}
		quota := throttled.RateQuota{MaxRate: throttled.PerSec(count), MaxBurst: count - 1}
		l, err := throttled.NewGCRARateLimiterCtx(store, quota)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, key string) (bool, error) {
			limited, _, err := l.RateLimitCtx(ctx, key, 1)
			return err == nil && !limited, err
		}, nil
	}}
}

// increments is INCR through go-redis's AutoPipeline: it decides nothing.
func increments() contender {
	return contender{name: "INCR, auto-pipelined", kind: report.Wall, open: func(_ testing.TB, client redis.UniversalClient) (load.Decide, error) {
		c, ok := client.(*redis.Client)
		if !ok {
			return nil, fmt.Errorf("a client of type %T has no AutoPipeline here", client)
		}
		pipeline, err := c.AutoPipeline()
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, key string) (bool, error) { return true, pipeline.Incr(ctx, key).Err() }, nil
	}}
}

// emptyScript is a script that does nothing.
var emptyScript = redis.NewScript("return 1")

// roundTrip is one bare EVALSHA a call.
func roundTrip() contender {
	return contender{name: "EVALSHA that does nothing", kind: report.Wall, open: func(_ testing.TB, client redis.UniversalClient) (load.Decide, error) {
		if err := emptyScript.Load(context.Background(), client).Err(); err != nil {
			return nil, err
		}
		return func(ctx context.Context, key string) (bool, error) {
			return true, emptyScript.EvalSha(ctx, client, []string{key}).Err()
		}, nil
	}}
}

// newClient returns a client with the settings that every contender has.
func newClient(server *redistest.Server) *redis.Client {
	return server.Client(func(o *redis.Options) { o.PoolSize = connections })
}
