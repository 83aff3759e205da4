// Package load asks for decisions as fast as they come: a closed model, in which each caller asks again once it has its answer.
package load

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/bench/internal/stats"
)

// A Decide asks whether a key may go on. It is called by many at once.
type Decide func(ctx context.Context, key string) (bool, error)

// A Turn is the work of one contender for a while.
type Turn struct {
	Callers int
	Keys    []string
	For     time.Duration
	Sample  int // one call in so many is timed; 1 = each
	Decide  Decide
}

// A Result is what came of a turn.
type Result struct {
	Decided int64 // calls that were answered, one way or the other
	Errors  int64
	Err     error // one of them; nil = none
	Elapsed time.Duration
	Latency stats.Histogram // of the calls that were timed
	Grants  []int64         // for each of Keys
}

// Rate returns decisions a second; errors are none.
func (r *Result) Rate() float64 { return float64(r.Decided) / r.Elapsed.Seconds() }

// Excess returns how many tokens were granted beyond what each key was permitted in the time of the turn.
func (r *Result) Excess(permits Permits) int64 {
	most, excess := permits(r.Elapsed), int64(0)
	for _, granted := range r.Grants {
		excess += max(0, granted-most)
	}
	return excess
}

// A caller is one of those who ask.
type caller struct {
	random  *rand.Rand
	decided int64
	errors  int64
	err     error
	latency stats.Histogram
}

// Run works for the time of the turn, or until ctx ends.
func (t Turn) Run(ctx context.Context) *Result {
	grants := make([]atomic.Int64, len(t.Keys))
	callers := make([]caller, t.Callers)
	var stop atomic.Bool
	var working sync.WaitGroup
	begun := time.Now()
	timer := time.AfterFunc(t.For, func() { stop.Store(true) })
	defer timer.Stop()
	for i := range callers {
		callers[i].random = rand.New(rand.NewPCG(uint64(i), 0))
		working.Go(func() { t.work(ctx, &callers[i], grants, &stop) })
	}
	working.Wait()
	r := &Result{Elapsed: time.Since(begun), Grants: make([]int64, len(grants))}
	for i := range grants {
		r.Grants[i] = grants[i].Load()
	}
	for i := range callers {
		c := &callers[i]
		r.Decided, r.Errors = r.Decided+c.decided, r.Errors+c.errors
		r.Latency.Merge(&c.latency)
		if r.Err == nil {
			r.Err = c.err
		}
	}
	return r
}

// work asks until it is told to stop, and at least once.
func (t Turn) work(ctx context.Context, c *caller, grants []atomic.Int64, stop *atomic.Bool) {
	for n := 0; ctx.Err() == nil; n++ {
		key := c.random.IntN(len(t.Keys))
		timed := n%t.Sample == 0
		var asked time.Time
		if timed {
			asked = time.Now()
		}
		granted, err := t.Decide(ctx, t.Keys[key])
		if timed {
			c.latency.Add(time.Since(asked))
		}
		switch {
		case err != nil && ctx.Err() != nil:
			return
		case err != nil:
			c.errors, c.err = c.errors+1, err
		case granted:
			grants[key].Add(1)
			fallthrough
		default:
			c.decided++
		}
		if stop.Load() {
			return
		}
	}
}
