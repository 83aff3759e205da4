package inprocess

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/bench/internal/load"
)

// A speedSpec says what a worker measures: a limiter over keys that it knows already, by as many goroutines as there are cores.
type speedSpec struct {
	Limiter string
	Quota   quota
	Keys    int
	For     time.Duration
}

// A speed is what came of it.
type speed struct {
	Calls       int64
	Elapsed     time.Duration
	Allocations int64
	Excess      int64 // of a single key
}

// perCall returns the time and the allocations of one call, the latter without the few that the measurement itself makes.
func (s speed) perCall() (seconds, allocations float64) {
	n := float64(s.Calls)
	return s.Elapsed.Seconds() / n, math.Round(float64(s.Allocations)/n*100) / 100
}

// Speed is the job of a worker.
func Speed(ctx context.Context, text []byte, out io.Writer) error {
	var spec speedSpec
	if err := json.Unmarshal(text, &spec); err != nil {
		return err
	}
	l, err := named(spec.Limiter)
	if err != nil {
		return err
	}
	ask, err := l.open(spec.Quota, spec.Keys)
	if err != nil {
		return err
	}
	keys := make([]string, spec.Keys)
	for i := range keys {
		keys[i] = tenant(i)
		if spec.Keys > 1 {
			ask(keys[i])
		}
	}
	s := spec.run(ctx, ask, keys, l.permits(spec.Quota), l.limited)
	return json.NewEncoder(out).Encode(s)
}

func (spec speedSpec) run(ctx context.Context, ask decide, keys []string, permits load.Permits, limited bool) speed {
	var calls, granted atomic.Int64
	var stop atomic.Bool
	var working sync.WaitGroup
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	begun := time.Now()
	timer := time.AfterFunc(spec.For, func() { stop.Store(true) })
	defer timer.Stop()
	for range runtime.GOMAXPROCS(0) {
		working.Go(func() {
			n, yes := askOften(ctx, ask, keys, &stop)
			calls.Add(n)
			granted.Add(yes)
		})
	}
	working.Wait()
	elapsed := time.Since(begun)
	runtime.ReadMemStats(&after)
	s := speed{Calls: calls.Load(), Elapsed: elapsed, Allocations: int64(after.Mallocs - before.Mallocs)}
	if len(keys) == 1 && limited {
		s.Excess = max(0, granted.Load()-permits(elapsed))
	}
	return s
}

// askOften asks for keys at random until it is told to stop, at least some hundred times, and counts calls and grants.
func askOften(ctx context.Context, ask decide, keys []string, stop *atomic.Bool) (calls, granted int64) {
	random := rand.New(rand.NewPCG(rand.Uint64(), 0))
	for {
		for range 256 {
			key := keys[0]
			if len(keys) > 1 {
				key = keys[random.IntN(len(keys))]
			}
			if ask(key) {
				granted++
			}
		}
		calls += 256
		if stop.Load() || ctx.Err() != nil {
			return calls, granted
		}
	}
}
