package redisstore

import (
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/algorithm"
	"github.com/headgate/headgate/redisstore/redistest"
)

// twin holds what internal/algorithm makes of the requests that the script decides.
type twin struct {
	states map[string]algorithm.State
	logs   map[string]*algorithm.Log
}

func (w *twin) log(field string) *algorithm.Log {
	if w.logs[field] == nil {
		w.logs[field] = new(algorithm.Log)
	}
	return w.logs[field]
}

// take decides one charge and returns its verdict.
func (w *twin) take(c headgate.Charge, now int64) algorithm.Verdict {
	f, p := Field(c), newRule(c.Limit).Params
	if p.Kind == algorithm.SlidingLog {
		v := w.log(f).Check(p, now, c.Cost)
		if v.Allowed {
			v = w.log(f).Grant(p, now, c.Cost)
		}
		return v
	}
	next, v := algorithm.Take(p, w.states[f], now, c.Cost)
	if c.Cost > 0 {
		w.states[f] = next
	}
	return v
}

func (w *twin) refund(c headgate.Charge, now, takenAt int64) {
	f, p := Field(c), newRule(c.Limit).Params
	switch {
	case c.Cost == 0:
	case p.Kind == algorithm.SlidingLog:
		w.log(f).Refund(p, now, c.Cost, takenAt)
	default:
		if s, ok := w.states[f]; ok {
			w.states[f] = algorithm.Refund(p, s, now, c.Cost, takenAt)
		}
	}
}

// giveBack is a refund, of a bucket less what came in place of the tokens meanwhile.
func (w *twin) giveBack(c headgate.Charge, now, takenAt int64) {
	f, p := Field(c), newRule(c.Limit).Params
	s, ok := w.states[f]
	if p.Kind != algorithm.TokenBucket || c.Cost == 0 || !ok {
		w.refund(c, now, takenAt)
		return
	}
	if s.At = min(s.At, now); now-s.At < min(s.Life, p.Life) {
		parts := func(a, b int64) *big.Int { return new(big.Int).Mul(big.NewInt(a), big.NewInt(b)) }
		back := parts(c.Cost, p.Period)
		back.Sub(back, parts(p.Count, max(0, now-takenAt)))
		inUse := parts(s.A, p.Period)
		inUse.Add(inUse, big.NewInt(s.B))
		if back.Sign() > 0 {
			inUse.Sub(inUse, back)
		}
		if inUse.Sign() < 0 {
			inUse.SetInt64(0)
		}
		whole, part := inUse.QuoRem(inUse, big.NewInt(p.Period), new(big.Int))
		s.A, s.B = whole.Int64(), part.Int64()
	}
	w.states[f] = s
}

// TestScriptIsTwinOfAlgorithm holds the script to the Go code, step by step, over random requests at random instants, with numbers of
// every size. The clock also steps back, less than a generation.
func TestScriptIsTwinOfAlgorithm(t *testing.T) {
	client := redistest.Start(t).Client()
	for seed := range uint64(150) {
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 7))
			store, err := New(client, Config{Prefix: fmt.Sprint("twin", seed, ":"), Shards: 4, SweepInterval: -1})
			if err != nil {
				t.Fatal(err)
			}
			now := time.UnixMicro(1_790_000_000_000_000 + random.Int64N(1e12))
			store.SetClock(func() time.Time { return now })
			w := &twin{map[string]algorithm.State{}, map[string]*algorithm.Log{}}
			limits, seldom := randomLimits(random), 6
			if seed%2 == 0 { // giving back is a matter of buckets
				seldom = 2
				limits = []headgate.Limit{headgate.PerSecond(7), {Count: 999_983, Period: time.Minute}, {Count: 3, Period: time.Second, Burst: 50}}
			}
			ctx := context.Background()
			for step := range 120 {
				limit := limits[random.IntN(len(limits))]
				now = now.Add(randomStep(random, limit))
				c := headgate.Charge{Key: fmt.Sprint("k", random.IntN(2)), Limit: limit, Cost: randomCost(random, limit)}
				if random.IntN(seldom) == 0 {
					var takenAt int64
					rctx := ctx
					if random.IntN(2) == 0 {
						longest := int64(2 * limit.Period)
						if random.IntN(2) == 0 { // about as long as some tokens take to come
							longest = 4 * int64(limit.Period) / (limit.Count + 1)
						}
						at := now.Add(-time.Duration(random.Int64N(longest + 1))).Truncate(time.Microsecond)
						takenAt, rctx = at.UnixMicro(), headgate.WithTakenAt(ctx, at)
					}
					if takenAt > 0 && random.IntN(3) > 0 {
						b := store.newBill(c, nil)
						if err := store.run(ctx, b.request.begin(verbGiveBack, takenAt, b.items)); err != nil {
							t.Fatal(err)
						}
						w.giveBack(c, now.UnixMicro(), takenAt)
					} else {
						if err := store.Refund(rctx, c); err != nil {
							t.Fatal(err)
						}
						w.refund(c, now.UnixMicro(), takenAt)
					}
					c.Cost = 0 // what is left now?
				}
				d, err := store.Take(ctx, c)
				if err != nil {
					t.Fatal(err)
				}
				got := headgate.State{Limit: d.Limit, Allowed: d.Allowed, Remaining: d.Remaining, RetryAfter: d.RetryAfter, ResetAfter: d.ResetAfter}
				if want := state(limit, w.take(c, now.UnixMicro())); got != want {
					t.Fatalf("step %d at %v: %v of %v for %q:\n got %+v\nwant %+v", step, now.UnixMicro(), c.Cost, limit, c.Key, got, want)
				}
			}
		})
	}
}

func randomLimits(r *rand.Rand) []headgate.Limit {
	counts := []int64{0, 1, 2, 7, 100, 999_983, 1_000_000_007, headgate.MaxCount}
	periods := []time.Duration{time.Millisecond, 300 * time.Millisecond, time.Second, 7 * time.Second, time.Minute, time.Hour, 24 * time.Hour, headgate.MaxPeriod}
	var limits []headgate.Limit
	for len(limits) < 4 {
		l := headgate.Limit{Algorithm: headgate.Algorithm(r.IntN(5)), Count: counts[r.IntN(len(counts))], Period: periods[r.IntN(len(periods))]}
		if l.Algorithm == headgate.TokenBucket && r.IntN(2) == 0 {
			l.Burst = counts[r.IntN(len(counts))]
		}
		if l.Validate() == nil && !slices.Contains(limits, l) {
			limits = append(limits, l)
		}
	}
	return limits
}

func randomStep(r *rand.Rand, l headgate.Limit) time.Duration {
	switch r.IntN(8) {
	case 0:
		return 0
	case 1:
		return -time.Duration(r.Int64N(int64(2 * time.Second))).Truncate(time.Microsecond)
	case 2:
		return l.Period
	case 3:
		return time.Duration(r.Int64N(int64(2 * l.Period))).Truncate(time.Microsecond)
	case 4:
		return time.Microsecond
	}
	return time.Duration(r.Int64N(int64(l.Period)/(min(l.Count, 1000)+1) + 1)).Truncate(time.Microsecond)
}

func randomCost(r *rand.Rand, l headgate.Limit) int64 {
	switch r.IntN(8) {
	case 0:
		return 0
	case 1:
		return l.Capacity()
	case 2:
		return l.Capacity() + 1
	case 3:
		return r.Int64()
	case 4:
		return r.Int64N(l.Capacity() + 1)
	}
	return 1
}
