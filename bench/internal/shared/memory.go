package shared

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/bench/internal/report"
	"github.com/headgate/headgate/bench/internal/trial"
	"github.com/headgate/headgate/redisstore"
	"github.com/headgate/headgate/redisstore/redistest"
)

const bytesPerKey = "memory a key"

// An hour is long enough that no key's time is over before all have been written.
const memoryPeriod = time.Hour

// A layout is a way to keep the state of a limit's keys in Redis.
type layout struct {
	name  string
	kind  report.Kind
	write func(ctx context.Context, tb testing.TB, client *redis.Client, s trial.Settings) error
}

// measureMemory measures each layout once: memory is not a matter of chance.
func measureMemory(ctx context.Context, tb testing.TB, s trial.Settings) (report.Row, error) {
	row := report.Row{
		About: fmt.Sprintf("One token taken of each of %d keys (such as `tenant:000042`) of 100 an hour; `used_memory` after it, less what it was before, divided by the keys. "+
			"Measured once.", s.RedisKeys),
		Columns: []report.Column{{Name: bytesPerKey, Unit: report.Bytes, LessIsBetter: true}},
		Goals:   []report.Goal{{Column: bytesPerKey, Target: 95, Most: true}},
	}
	for _, l := range []layout{
		{string(report.Headgate), report.Headgate, writeHeadgate},
		{"a string for each key", report.Peer, writeStrings},
		{"a hash for each key", report.Peer, writeHashes},
	} {
		e := report.Entry{Name: l.name, Kind: l.kind}
		perKey, err := l.measure(ctx, tb, s)
		if err != nil {
			return row, fmt.Errorf("%s: %w", l.name, err)
		}
		e.Add(bytesPerKey, perKey)
		row.Entries = append(row.Entries, e)
		s.Progress(fmt.Sprintf("%s: %.1f bytes a key", l.name, perKey))
	}
	return row, nil
}

func (l layout) measure(ctx context.Context, tb testing.TB, s trial.Settings) (float64, error) {
	server := redistest.Start(tb)
	defer server.Kill()
	admin := server.Client(func(o *redis.Options) { o.PoolSize = 1 })
	before, err := usedMemory(ctx, admin)
	if err != nil {
		return 0, err
	}
	client := newClient(server)
	if err := l.write(ctx, tb, client, s); err != nil {
		return 0, err
	}
	if err := client.Close(); err != nil { // connections take memory too
		return 0, err
	}
	after, err := usedMemory(ctx, admin)
	return (after - before) / float64(s.RedisKeys), err
}

func memoryKey(i int) string { return fmt.Sprintf("tenant:%06d", i) }

// writeHeadgate takes once from every key.
func writeHeadgate(ctx context.Context, tb testing.TB, client *redis.Client, s trial.Settings) error {
	store, err := openStore(tb, client, redisstore.Config{SweepInterval: -1})
	if err != nil {
		return err
	}
	limit := headgate.Limit{Count: count, Period: memoryPeriod}
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var working sync.WaitGroup
	for range s.ManyCallers {
		working.Go(func() {
			for i := next.Add(1) - 1; i < int64(s.RedisKeys) && failed.Load() == nil; i = next.Add(1) - 1 {
				d, err := store.Take(ctx, headgate.Charge{Key: memoryKey(int(i)), Cost: 1, Limit: limit})
				if err == nil && !d.Allowed {
					err = fmt.Errorf("the first request of a key was denied")
				}
				if err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	working.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return store.Close()
}

// writeStrings writes what a limiter of one instant for each key does.
func writeStrings(ctx context.Context, _ testing.TB, client *redis.Client, s trial.Settings) error {
	return inPipelines(ctx, client, s.RedisKeys, func(p redis.Pipeliner, key string) {
		p.Set(ctx, key, strconv.FormatInt(time.Now().UnixMicro(), 10), memoryPeriod)
	})
}

// writeHashes writes what the script of a hash for each key does.
func writeHashes(ctx context.Context, _ testing.TB, client *redis.Client, s trial.Settings) error {
	return inPipelines(ctx, client, s.RedisKeys, func(p redis.Pipeliner, key string) {
		p.HSet(ctx, key, "tokens", count-1, "ts", time.Now().UnixMilli())
		p.PExpire(ctx, key, memoryPeriod)
	})
}

func inPipelines(ctx context.Context, client *redis.Client, keys int, write func(p redis.Pipeliner, key string)) error {
	const size = 1000
	for from := 0; from < keys; from += size {
		p := client.Pipeline()
		for i := from; i < min(keys, from+size); i++ {
			write(p, memoryKey(i))
		}
		if _, err := p.Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

func usedMemory(ctx context.Context, client *redis.Client) (float64, error) {
	return strconv.ParseFloat(client.InfoMap(ctx, "memory").Item("Memory", "used_memory"), 64)
}
