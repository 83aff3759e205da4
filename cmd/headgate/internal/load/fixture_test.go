package load_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/load"
	"github.com/headgate/headgate/internal/algorithm"
)

// targetFunc is a target of one function.
type targetFunc func(ctx context.Context, key int) load.Outcome

func (f targetFunc) Do(ctx context.Context, key int) load.Outcome { return f(ctx, key) }

// constant is a run of n requests a second, in the time of a bubble.
func constant(n int64, duration time.Duration, target targetFunc) load.Config {
	return load.Config{
		Target: target, Arrivals: load.Constant(n, time.Second), Duration: duration, MaxInFlight: 10_000, Timeout: time.Minute, Sleep: time.Sleep,
	}
}

// inBubble runs cfg, which make makes at the start of a bubble, in which nothing may be left running.
func inBubble(t *testing.T, make func() load.Config) *load.Report {
	t.Helper()
	var report *load.Report
	synctest.Test(t, func(t *testing.T) {
		var err error
		if report, err = load.Run(t.Context(), make()); err != nil {
			t.Fatal(err)
		}
	})
	return report
}

// A limiter decides as its limit says, at instants of a clock of its own that runs apart from that of the client. Requests take their
// time to it and back.
type limiter struct {
	limit  headgate.Limit // what it really holds keys to
	offset time.Duration
	drift  float64 // its clock gains so much
	jitter time.Duration
	lost   float64 // so many of the answers are lost

	mu     sync.Mutex
	random *rand.Rand
	start  time.Time
	states map[int]algorithm.State
	logs   map[int]*algorithm.Log
}

func newLimiter(limit headgate.Limit, random *rand.Rand) *limiter {
	return &limiter{limit: limit, random: random, start: time.Now(), states: make(map[int]algorithm.State), logs: make(map[int]*algorithm.Log)}
}

// wait returns how long the next way takes: mostly little.
func (l *limiter) wait() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.jitter == 0 {
		return 0
	}
	share := l.random.Float64()
	return time.Duration(share * share * share * share * float64(l.jitter))
}

func (l *limiter) Do(_ context.Context, key int) load.Outcome {
	time.Sleep(l.wait())
	allowed, lost := l.decide(key)
	time.Sleep(l.wait())
	switch {
	case lost:
		return load.Outcome{Verdict: load.Failed, Kind: "lost"}
	case allowed:
		return load.Outcome{Verdict: load.Allowed}
	default:
		return load.Outcome{Verdict: load.Denied}
	}
}

func (l *limiter) decide(key int) (allowed, lost bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	elapsed := time.Since(l.start)
	now := (l.offset + elapsed + time.Duration(l.drift*float64(elapsed))).Microseconds()
	p := algorithm.NewParams(algorithm.Kind(l.limit.Algorithm), l.limit.Count, l.limit.Period.Microseconds(), l.limit.Burst)
	var v algorithm.Verdict
	if l.limit.Algorithm == headgate.SlidingLog {
		if l.logs[key] == nil {
			l.logs[key] = new(algorithm.Log)
		}
		if v = l.logs[key].Check(p, now, 1); v.Allowed {
			l.logs[key].Grant(p, now, 1)
		}
	} else {
		l.states[key], v = algorithm.Take(p, l.states[key], now, 1)
	}
	return v.Allowed, l.random.Float64() < l.lost
}

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

func parse(t *testing.T, text string) headgate.Limit {
	t.Helper()
	l, err := headgate.ParseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
