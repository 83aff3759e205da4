package load_test

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/load"
)

// first lets the first n requests pass.
func first(n int) targetFunc {
	asked := make(chan struct{}, n)
	return func(context.Context, int) load.Outcome {
		select {
		case asked <- struct{}{}:
			return load.Outcome{}
		default:
			return load.Outcome{Verdict: load.Denied}
		}
	}
}

// One more than is permitted is seen, and no fewer is held against a limiter.
func TestAuditAtTheEdge(t *testing.T) {
	for _, tt := range []struct {
		limit string
		fresh bool
		most  int // in the half second that the run takes
	}{
		{"10/hour", true, 10},
		{"10/hour burst 3", true, 3},
		{"10/hour fixed-window", true, 10},
		{"10/hour fixed-window", false, 20},
		{"10/hour aligned-window", true, 20},
		{"10/hour sliding-window", true, 19},
		{"10/hour sliding-log", true, 10},
		{"0/s", true, 0},
	} {
		for n, want := range map[int]load.Result{tt.most: load.Within, tt.most + 1: load.Over} {
			r := inBubble(t, func() load.Config {
				cfg := constant(100, 500*time.Millisecond, first(n))
				limit := parse(t, tt.limit)
				cfg.Limit, cfg.Fresh = &limit, tt.fresh
				return cfg
			})
			if r.Result() != want || r.Good() != (want == load.Within) || r.Audit.Allowed != int64(n) || n > 0 && r.Audit.Whole.Permitted != int64(tt.most) {
				t.Errorf("%s, fresh %v, %d allowed: %v %+v, want %v", tt.limit, tt.fresh, n, r.Result(), r.Audit, want)
			}
		}
	}
}

// What was allowed before the warm-up was over may have opened a window that ends in the midst of what is measured; and so may a request whose
// answer was lost.
func TestFreshIsLost(t *testing.T) {
	for name, spoil := range map[string]func(*load.Config){
		"warm-up": func(cfg *load.Config) { cfg.Warmup = 100 * time.Millisecond },
		"failure": func(cfg *load.Config) {
			var n atomic.Int64
			target := cfg.Target
			cfg.Target = targetFunc(func(ctx context.Context, key int) load.Outcome {
				if n.Add(1) == 1 {
					return load.Outcome{Verdict: load.Failed, Kind: "lost"}
				}
				return target.Do(ctx, key)
			})
		},
	} {
		r := inBubble(t, func() load.Config {
			cfg := constant(100, 500*time.Millisecond, first(1000))
			limit := parse(t, "10/hour fixed-window")
			cfg.Limit, cfg.Fresh = &limit, true
			spoil(&cfg)
			return cfg
		})
		if r.Audit.Whole.Permitted != 20 {
			t.Errorf("%s: %+v, want 20 permitted", name, r.Audit.Whole)
		}
	}
}

// A key is judged by what it alone was allowed, and the worst one is named.
func TestAuditNamesTheKey(t *testing.T) {
	r := inBubble(t, func() load.Config {
		next := -1
		three := first(4)
		cfg := constant(100, 2*time.Second, func(ctx context.Context, key int) load.Outcome {
			if key == 3 {
				return three(ctx, key)
			}
			if key == 7 {
				return load.Outcome{}
			}
			return load.Outcome{Verdict: load.Denied}
		})
		cfg.KeyCount = 10
		cfg.Keys = func() int { next++; return next % 10 }
		limit := parse(t, "5/s sliding-log")
		cfg.Limit = &limit
		return cfg
	})
	a := r.Audit
	if a.Keys != 10 || a.Allowed != 24 || a.Permitted != 10*5*2 || a.Over != 1 || a.Window.Key != 7 || a.Window.Permitted != 5 || a.Window.Allowed != 10 {
		t.Errorf("%+v, want key 7 with 10 of 5", a)
	}
}

// A slow answer says little about when it was decided: two requests may lie in one window or not.
func TestAuditGivesTheBenefitOfTheDoubt(t *testing.T) {
	for took, want := range map[time.Duration]load.Result{400 * time.Millisecond: load.Over, 600 * time.Millisecond: load.Within} {
		r := inBubble(t, func() load.Config {
			cfg := constant(2, time.Second, func(context.Context, int) load.Outcome {
				time.Sleep(took)
				return load.Outcome{}
			})
			limit := parse(t, "1/s sliding-log")
			cfg.Limit = &limit
			return cfg
		})
		if r.Result() != want {
			t.Errorf("half a second apart, each %v: %v %+v, want %v", took, r.Result(), r.Audit, want)
		}
	}
}

// Slow answers, which may have been decided at any time, hide nothing of what quick ones show.
func TestSlowAnswersHideNothing(t *testing.T) {
	r := inBubble(t, func() load.Config {
		start := time.Now()
		cfg := constant(20, 2*time.Second, func(context.Context, int) load.Outcome {
			if time.Since(start) < time.Second {
				time.Sleep(5 * time.Second)
			}
			return load.Outcome{}
		})
		limit := parse(t, "19/s sliding-log")
		cfg.Limit = &limit
		return cfg
	})
	if w := r.Audit.Window; r.Result() != load.Over || w.Allowed != 20 || w.Permitted != 19 || w.From != load.Millis(time.Second) {
		t.Errorf("%v %+v, want the 20 of the second second", r.Result(), w)
	}
}

// A limiter whose clock runs a little faster or slower than that of the client is not accused, though its answers come at once.
func TestClocksApart(t *testing.T) {
	for a := range headgate.Algorithm(5) {
		for _, drift := range []float64{-0.0009, 0.0009} {
			limit := headgate.Limit{Algorithm: a, Count: 20, Period: time.Second}
			r := inBubble(t, func() load.Config {
				server := newLimiter(limit, seeded(1))
				server.drift = drift
				cfg := constant(50, 100*time.Second, server.Do)
				cfg.Limit, cfg.Fresh = &limit, true
				return cfg
			})
			if r.Result() != load.Within || r.Audit.Allowed < 1800 {
				t.Errorf("%v, drift %v: %v %+v", limit, drift, r.Result(), r.Audit)
			}
		}
	}
}

// history is a run of random load on a limiter of a random kind, whose clock is another one.
func history(random *rand.Rand, limit headgate.Limit, lie int64) load.Config {
	server := newLimiter(limit, seeded(random.Uint64()))
	server.limit.Count *= lie
	server.offset = time.Hour + time.Duration(random.Int64N(int64(time.Hour)))
	server.drift = (random.Float64() - 0.5) * 0.001
	server.jitter = time.Duration(random.Int64N(int64(limit.Period)))
	if lie == 1 {
		server.jitter = time.Duration(random.Int64N(int64(10 * limit.Period)))
		server.lost = float64(random.IntN(2)) * 0.1
	}
	keys := 1 + random.IntN(3)
	picks, arrivals := seeded(random.Uint64()), seeded(random.Uint64())
	duration := time.Duration(3+random.IntN(3)) * limit.Period
	perPeriod := int64(keys) * limit.Count * 3
	cfg := load.Config{
		Target: server, Limit: &limit, Fresh: true, Keys: load.Uniform(keys, picks), KeyCount: keys, Duration: duration,
		MaxInFlight: 100_000, Timeout: time.Minute, Sleep: time.Sleep, Arrivals: load.Constant(perPeriod, limit.Period),
	}
	if random.IntN(2) == 0 {
		cfg.Arrivals = load.Poisson(perPeriod, limit.Period, arrivals)
	}
	if random.IntN(4) == 0 {
		cfg.Warmup = limit.Period
	}
	return cfg
}

func randomLimit(random *rand.Rand) headgate.Limit {
	l := headgate.Limit{
		Algorithm: headgate.Algorithm(random.IntN(5)), Count: 1 + random.Int64N(20), Period: time.Duration(2+random.Int64N(3000)) * time.Millisecond,
	}
	if l.Algorithm == headgate.TokenBucket && random.IntN(2) == 0 {
		l.Burst = 1 + random.Int64N(40)
	}
	return l
}

// No honest limiter is accused, however its answers are delayed or lost, and whatever its clock shows.
func TestHonestLimitersAreNotAccused(t *testing.T) {
	for seed := range uint64(100) {
		var limit headgate.Limit
		r := inBubble(t, func() load.Config {
			random := seeded(seed)
			limit = randomLimit(random)
			return history(random, limit, 1)
		})
		if r.Audit.Over != 0 || r.Audit.Allowed == 0 || r.Audit.Allowed > r.Audit.Permitted {
			t.Errorf("seed %d: %v is over: %+v", seed, limit, r.Audit)
		}
	}
}

// Whoever lets through three times as much is caught, in every algorithm.
func TestLiarsAreCaught(t *testing.T) {
	for a := range headgate.Algorithm(5) {
		for seed := range uint64(20) {
			limit := headgate.Limit{Algorithm: a, Count: 20, Period: time.Second}
			r := inBubble(t, func() load.Config { return history(seeded(seed), limit, 3) })
			if r.Result() != load.Over {
				t.Errorf("%v, seed %d: %v %+v", limit, seed, r.Result(), r.Audit)
			}
		}
	}
}
