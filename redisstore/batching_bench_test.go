package redisstore_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore"
	"github.com/headgate/headgate/redisstore/redistest"
)

// BenchmarkTake measures takes by so many callers at once, of so many keys: decisions a second, and how long one of them waits.
func BenchmarkTake(b *testing.B) {
	server := redistest.Start(b)
	client := server.Client(func(o *redis.Options) { o.ContextTimeoutEnabled, o.PoolSize = true, 64 })
	store := open(b, client, redisstore.Config{})
	for _, keys := range []int{1, 10_000} {
		for _, callers := range []int{1, 2, 4, 8, 16, 64, 256, 1024} {
			b.Run(fmt.Sprintf("keys=%d/callers=%d", keys, callers), func(b *testing.B) {
				before := redisstore.ServerTime(b, client)
				benchCallers(b, callers, func(i int) error {
					_, err := store.Take(context.Background(), headgate.Charge{Key: "tenant:" + strconv.Itoa(i*7919%keys), Cost: 1, Limit: headgate.PerSecond(100)})
					return err
				})
				b.ReportMetric((redisstore.ServerTime(b, client)-before)*1e6/float64(b.N), "server-us/decision")
			})
		}
	}
}

// BenchmarkBatching measures the ways to have many takes of 10,000 keys decided by the same script: a call for each on pooled connections,
// the calls that queue while a pipeline is under way put into the next, the same done by the client, and batches.
func BenchmarkBatching(b *testing.B) { benchWays(b, redistest.Start(b).Addr()) }

// BenchmarkBatchingFar is BenchmarkBatching where the server's answers take a millisecond more.
func BenchmarkBatchingFar(b *testing.B) {
	far := startNetwork(b, redistest.Start(b).Addr())
	far.slow(time.Millisecond, 1)
	benchWays(b, far.addr())
}

func benchWays(b *testing.B, addr string) {
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, PoolSize: 64})
	b.Cleanup(func() { _ = client.Close() })
	store := open(b, client, redisstore.Config{})
	pipeline, err := client.AutoPipeline()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = pipeline.Close() })
	pipelines := newPipelines(b, client)
	charge := func(i int) headgate.Charge {
		return headgate.Charge{Key: "tenant:" + strconv.Itoa(i*7919%10_000), Cost: 1, Limit: headgate.PerMinute(100)}
	}
	ctx := context.Background()
	for _, way := range []struct {
		name string
		do   func(i int) error
	}{
		{"calls", func(i int) error { return client.Do(ctx, store.Command(charge(i))...).Err() }},
		{"pipelines", func(i int) error { return pipelines.do(store.Command(charge(i))) }},
		{"autopipeline", func(i int) error { return pipeline.Do(ctx, store.Command(charge(i))...).Err() }},
		{"batches", func(i int) error {
			_, err := store.Take(ctx, charge(i))
			return err
		}},
	} {
		for _, callers := range []int{1, 4, 16, 64, 256, 1024} {
			b.Run(fmt.Sprintf("%s/callers=%d", way.name, callers), func(b *testing.B) {
				take(b, store, charge(0)) // the server knows the script
				before := redisstore.ServerTime(b, client)
				benchCallers(b, callers, way.do)
				b.ReportMetric((redisstore.ServerTime(b, client)-before)*1e6/float64(b.N), "server-us/decision")
			})
		}
	}
}

// pipelines sends calls as a lane sends requests, but each as a command of its own.
type pipelines struct {
	client *redis.Client
	calls  chan pipelined
}

type pipelined struct {
	args []any
	done chan error
}

// newPipelines has as many pipelines under way at a time as a lane has batches.
func newPipelines(b *testing.B, client *redis.Client) *pipelines {
	p := &pipelines{client: client, calls: make(chan pipelined, 2048)}
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(p.work)
	}
	b.Cleanup(func() {
		close(p.calls)
		workers.Wait()
	})
	return p
}

func (p *pipelines) do(args []any) error {
	done := make(chan error, 1)
	p.calls <- pipelined{args, done}
	return <-done
}

func (p *pipelines) work() {
	for first := range p.calls {
		queued := p.more([]pipelined{first})
		pipe := p.client.Pipeline()
		for _, c := range queued {
			pipe.Do(context.Background(), c.args...)
		}
		cmds, _ := pipe.Exec(context.Background()) // each command has its own error
		for i, c := range queued {
			c.done <- cmds[i].Err()
		}
	}
}

// more returns queued with what else is there at once.
func (p *pipelines) more(queued []pipelined) []pipelined {
	for len(queued) < 512 {
		select {
		case next, ok := <-p.calls:
			if !ok {
				return queued
			}
			queued = append(queued, next)
		default:
			return queued
		}
	}
	return queued
}

// BenchmarkCluster measures how many shards serve a Cluster best: 256 callers, 10,000 keys.
func BenchmarkCluster(b *testing.B) {
	for _, masters := range []int{3, 6} {
		client := redistest.StartCluster(b, masters).Client(func(o *redis.ClusterOptions) { o.ContextTimeoutEnabled = true })
		for _, shards := range []int{3, 6, 16, 64} {
			store := open(b, client, redisstore.Config{Prefix: fmt.Sprint(shards, ":"), Shards: shards})
			b.Run(fmt.Sprintf("masters=%d/shards=%d", masters, shards), func(b *testing.B) {
				benchCallers(b, 256, func(i int) error {
					_, err := store.Take(context.Background(), headgate.Charge{Key: "tenant:" + strconv.Itoa(i*7919%10_000), Cost: 1, Limit: headgate.PerMinute(100)})
					return err
				})
			})
		}
	}
}

// benchCallers has so many callers do b.N things between them.
func benchCallers(b *testing.B, callers int, do func(i int) error) {
	var next atomic.Int64
	var wg sync.WaitGroup
	waits := make([][]time.Duration, callers)
	b.ResetTimer()
	for caller := range callers {
		wg.Go(func() {
			for {
				i := next.Add(1)
				if i > int64(b.N) {
					return
				}
				start := time.Now()
				if err := do(int(i)); err != nil {
					b.Error(err)
					return
				}
				if i%16 == 0 {
					waits[caller] = append(waits[caller], time.Since(start))
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	all := slices.Concat(waits...)
	slices.Sort(all)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
	if len(all) > 0 {
		b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-us")
		b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-us")
	}
}
