package proof_test

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore"
	"github.com/headgate/headgate/redisstore/redistest"
)

// The load of BenchmarkOutage: an open model, so that a slow answer does not hold back the next question.
const (
	offeredPerSecond = 10_000
	outageLasts      = 10 * time.Second
)

// lineCounter is a log handler that counts.
type lineCounter struct {
	slog.Handler
	lines *atomic.Int64
}

func (c lineCounter) Enabled(context.Context, slog.Level) bool { return true }
func (c lineCounter) Handle(context.Context, slog.Record) error {
	c.lines.Add(1)
	return nil
}

// An answer is what one question got.
type answer struct {
	open  bool // the breaker was, when it was asked
	local bool
	took  time.Duration
}

// BenchmarkOutage offers 10,000 decisions a second for ten seconds to a limiter whose Redis hangs, and reports how long those waited who
// came while the breaker was closed and who came later, how many goroutines there were at most, how many lines were logged, and how long
// after Redis goes on its decisions come back. Run it with -benchtime 1x; nothing else should be running.
func BenchmarkOutage(b *testing.B) {
	for range b.N {
		server := redistest.Start(b)
		store, err := redisstore.New(server.Client(), redisstore.Config{})
		if err != nil {
			b.Fatal(err)
		}
		guard, err := headgate.NewGuard(store, headgate.GuardConfig{})
		if err != nil {
			b.Fatal(err)
		}
		var lines atomic.Int64
		limiter, err := headgate.New(guard, []headgate.Limit{headgate.PerSecond(100)}, headgate.Config{
			OnStoreError: headgate.FailLocal, Logger: slog.New(lineCounter{slog.DiscardHandler, &lines}),
		})
		if err != nil {
			b.Fatal(err)
		}
		if d, err := limiter.Allow(context.Background(), "k"); err != nil || d.Source != headgate.FromStore {
			b.Fatalf("%+v, %v", d, err)
		}
		server.Pause()
		answers, goroutines := offer(guard, limiter)
		report(b, answers, goroutines, lines.Load())
		server.Resume()
		back := time.Now()
		for {
			if d, _ := limiter.Allow(context.Background(), "k"); d.Source == headgate.FromStore {
				break
			}
			if time.Since(back) > time.Minute {
				b.Fatal("decisions do not come back")
			}
			time.Sleep(time.Millisecond)
		}
		b.ReportMetric(float64(time.Since(back).Milliseconds()), "ms-to-recover")
		_ = store.Close()
	}
}

// offer asks at a constant rate, each question in a goroutine of its own, and returns all answers and the most goroutines seen.
func offer(guard *headgate.Guard, limiter *headgate.Limiter) ([]answer, int) {
	n := int(outageLasts.Seconds() * offeredPerSecond)
	answers := make([]answer, n)
	var wg sync.WaitGroup
	most := 0
	start := time.Now()
	for i := range n {
		due := start.Add(time.Duration(i) * time.Second / offeredPerSecond)
		if wait := time.Until(due); wait > 0 {
			time.Sleep(wait)
		}
		if i%100 == 0 {
			most = max(most, runtime.NumGoroutine())
		}
		wg.Go(func() {
			open := guard.State() != headgate.BreakerClosed
			asked := time.Now()
			d, _ := limiter.Allow(context.Background(), "k")
			answers[i] = answer{open, d.Source == headgate.FromLocal, time.Since(asked)}
		})
	}
	wg.Wait()
	return answers, most
}

func report(b *testing.B, answers []answer, goroutines int, lines int64) {
	var closed, open []time.Duration
	for _, a := range answers {
		if !a.local {
			b.Fatal("a decision that is not local, from a store that hangs")
		}
		if a.open {
			open = append(open, a.took)
		} else {
			closed = append(closed, a.took)
		}
	}
	p99 := func(d []time.Duration) float64 {
		slices.Sort(d)
		return float64(d[len(d)*99/100].Microseconds())
	}
	b.ReportMetric(float64(len(closed)), "came-while-closed")
	b.ReportMetric(p99(closed), "us-p99-closed")
	b.ReportMetric(p99(open), "us-p99-open")
	b.ReportMetric(float64(goroutines), "goroutines")
	b.ReportMetric(float64(lines), "log-lines")
}
