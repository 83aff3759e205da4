// Package inprocess measures limiters that keep their state in the memory of one process.
package inprocess

import (
	"context"
	"fmt"
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-chi/httprate"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	ulule "github.com/ulule/limiter/v3"
	ululememory "github.com/ulule/limiter/v3/drivers/store/memory"
	"golang.org/x/time/rate"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/bench/internal/load"
	"github.com/headgate/headgate/bench/internal/report"
)

// A quota is the limit of every limiter, for each key. The burst is the count.
type quota struct {
	Count  int64
	Period time.Duration
}

// A decide says whether a key may go on. It is called by many at once.
type decide func(key string) bool

// A limiter is one way to decide, or to do less than that.
type limiter struct {
	name    string
	kind    report.Kind
	bucket  bool // a token bucket; else it counts in windows
	open    func(q quota, keys int) (decide, error)
	perKey  int64 // bytes that a key may take while the limiter grows, to know what fits
	limited bool  // it limits at all
}

func (l limiter) permits(q quota) load.Permits {
	if l.bucket {
		return load.Bucket(q.Count, q.Count, q.Period)
	}
	return load.Windows(q.Count, q.Period)
}

const (
	casName     = "hash and compare-and-swap"
	nothingName = "nothing"
)

// limiters are all that can be measured.
var limiters = []limiter{
	{name: string(report.Headgate), kind: report.Headgate, bucket: true, open: openHeadgate, perKey: 400, limited: true},
	{name: "x/time/rate in a sync.Map", kind: report.Peer, bucket: true, open: openTimeRate, perKey: 600, limited: true},
	{name: "sethvargo/go-limiter", kind: report.Peer, open: openSethvargo, perKey: 600, limited: true},
	{name: "httprate", kind: report.Peer, open: openHTTPRate, perKey: 600, limited: true},
	{name: "ulule/limiter", kind: report.Peer, open: openUlule, perKey: 800, limited: true},
	{name: "throttled", kind: report.Peer, bucket: true, open: openThrottled, perKey: 800, limited: true},
	{name: casName, kind: report.Wall, bucket: true, open: openCAS, perKey: 16, limited: true},
	{name: nothingName, kind: report.Wall, open: openNothing},
}

// named returns the limiter of a name.
func named(name string) (limiter, error) {
	for _, l := range limiters {
		if l.name == name {
			return l, nil
		}
	}
	return limiter{}, fmt.Errorf("there is no limiter %q", name)
}

func openHeadgate(q quota, keys int) (decide, error) {
	memory, err := headgate.NewMemory(headgate.MemoryConfig{MaxKeys: max(keys, headgate.DefaultMaxKeys)})
	if err != nil {
		return nil, err
	}
	limit := headgate.Limit{Count: q.Count, Period: q.Period}
	return func(key string) bool {
		d, err := memory.Take(context.Background(), headgate.Charge{Key: key, Cost: 1, Limit: limit})
		return err == nil && d.Allowed
	}, nil
}

func openTimeRate(q quota, _ int) (decide, error) {
	var buckets sync.Map
	every := rate.Every(q.Period / time.Duration(q.Count))
	return func(key string) bool {
		b, found := buckets.Load(key)
		if !found {
			b, _ = buckets.LoadOrStore(key, rate.NewLimiter(every, int(q.Count)))
		}
		bucket, ok := b.(*rate.Limiter)
		return ok && bucket.Allow()
	}, nil
}

func openSethvargo(q quota, _ int) (decide, error) {
	store, err := memorystore.New(&memorystore.Config{Tokens: uint64(q.Count), Interval: q.Period, SweepInterval: time.Hour, SweepMinTTL: time.Hour})
	if err != nil {
		return nil, err
	}
	return func(key string) bool {
		_, _, _, ok, err := store.Take(context.Background(), key)
		return err == nil && ok
	}, nil
}

// openHTTPRate does what httprate's middleware does for a request, but for the header fields.
func openHTTPRate(q quota, _ int) (decide, error) {
	counter := httprate.NewLocalLimitCounter(q.Period)
	l := httprate.NewRateLimiter(int(q.Count), q.Period, httprate.WithLimitCounter(counter)) // whose windows are then those of the clock
	var mu sync.Mutex
	return func(key string) bool {
		window := time.Now().UTC().Truncate(q.Period)
		mu.Lock()
		defer mu.Unlock()
		_, used, err := l.Status(key)
		if err != nil || int64(math.Round(used))+1 > q.Count {
			return false
		}
		return counter.IncrementBy(key, window, 1) == nil
	}, nil
}

func openUlule(q quota, _ int) (decide, error) {
	l := ulule.New(ululememory.NewStore(), ulule.Rate{Period: q.Period, Limit: q.Count})
	return func(key string) bool {
		c, err := l.Get(context.Background(), key)
		return err == nil && !c.Reached
	}, nil
}

func openThrottled(q quota, keys int) (decide, error) {
	store, err := memstore.NewCtx(2 * keys)
	if err != nil {
		return nil, err
	}
	every := throttled.PerDuration(int(q.Count), q.Period)
	l, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: every, MaxBurst: int(q.Count) - 1})
	if err != nil {
		return nil, err
	}
	return func(key string) bool {
		limited, _, err := l.RateLimitCtx(context.Background(), key, 1)
		return err == nil && !limited
	}, nil
}

// openCAS is a token bucket of one instant for each place of an array: what a decision is without telling keys of one place apart.
func openCAS(q quota, keys int) (decide, error) {
	places := 1
	for places < keys {
		places *= 2
	}
	states := make([]atomic.Int64, places)
	seed, start := maphash.MakeSeed(), time.Now()
	interval, capacity := int64(q.Period)/q.Count, int64(q.Period)
	return func(key string) bool {
		s := &states[maphash.String(seed, key)&uint64(places-1)]
		now := int64(time.Since(start))
		for {
			at := s.Load()
			next := max(at, now) + interval
			if next-now > capacity {
				return false
			}
			if s.CompareAndSwap(at, next) {
				return true
			}
		}
	}, nil
}

func openNothing(quota, int) (decide, error) {
	return func(key string) bool { return key != "" }, nil
}
