package algorithm_test

import (
	"math/rand/v2"
	"testing"

	"github.com/headgate/headgate/internal/algorithm"
)

const (
	ms     = int64(1000)
	second = 1000 * ms
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour

	// start is the instant at which the tables begin: a multiple of every period in them, so that aligned windows begin there too.
	start = 20_000 * day
)

// A step is one Take of a table, at an instant counted from start.
type step struct {
	at, cost int64
	want     algorithm.Verdict
}

func granted(remaining, reset int64) algorithm.Verdict {
	return algorithm.Verdict{Allowed: true, Remaining: remaining, Reset: reset}
}

func denied(remaining, retry, reset int64) algorithm.Verdict {
	return algorithm.Verdict{Remaining: remaining, Retry: retry, Reset: reset}
}

// A counter is one key under one limit, of any kind: it keeps what a store would keep.
type counter struct {
	state algorithm.State
	log   algorithm.Log
}

func (c *counter) take(p algorithm.Params, now, cost int64) algorithm.Verdict {
	if p.Kind == algorithm.SlidingLog {
		v := c.log.Check(p, now, cost)
		if v.Allowed {
			v = c.log.Grant(p, now, cost)
		}
		return v
	}
	next, v := algorithm.Take(p, c.state, now, cost)
	if cost > 0 {
		c.state = next
	}
	return v
}

func (c *counter) refund(p algorithm.Params, now, n, takenAt int64) {
	if p.Kind == algorithm.SlidingLog {
		c.log.Refund(p, now, n, takenAt)
		return
	}
	c.state = algorithm.Refund(p, c.state, now, n, takenAt)
}

// play takes every step and compares the verdicts.
func play(t *testing.T, p algorithm.Params, steps []step) {
	t.Helper()
	var c counter
	for i, s := range steps {
		if got := c.take(p, start+s.at, s.cost); got != s.want {
			t.Errorf("step %d, cost %d at %d: got %+v, want %+v", i+1, s.cost, s.at, got, s.want)
		}
	}
}

var kinds = map[string]algorithm.Kind{
	"token-bucket":   algorithm.TokenBucket,
	"fixed-window":   algorithm.FixedWindow,
	"aligned-window": algorithm.AlignedWindow,
	"sliding-window": algorithm.SlidingWindow,
	"sliding-log":    algorithm.SlidingLog,
}

func TestParams(t *testing.T) {
	for _, tt := range []struct {
		kind                 algorithm.Kind
		count, period, burst int64
		capacity, life       int64
	}{
		{algorithm.TokenBucket, 10, second, 0, 10, second},
		{algorithm.TokenBucket, 10, second, 10, 10, second},
		{algorithm.TokenBucket, 10, second, 25, 25, 2500 * ms},
		{algorithm.TokenBucket, 3, second, 1, 1, 333_334}, // rounded up: a microsecond earlier a part is still in use
		{algorithm.TokenBucket, 0, second, 5, 0, second},  // nothing passes, whatever the burst
		{algorithm.TokenBucket, 1, 366 * day, 1e15, 1e15, 1<<63 - 1},
		{algorithm.TokenBucket, 1, 13 * ms, 1e15, 1e15, 1<<63 - 1}, // fits 64 bits, but not 63
		{algorithm.FixedWindow, 10, second, 0, 10, second},
		{algorithm.AlignedWindow, 10, second, 0, 10, second},
		{algorithm.SlidingWindow, 10, second, 0, 10, 2 * second},
		{algorithm.SlidingLog, 10, second, 0, 10, second},
	} {
		got := algorithm.NewParams(tt.kind, tt.count, tt.period, tt.burst)
		want := algorithm.Params{Kind: tt.kind, Count: tt.count, Period: tt.period, Capacity: tt.capacity, Life: tt.life}
		if got != want {
			t.Errorf("NewParams(%d, %d, %d, %d) = %+v, want %+v", tt.kind, tt.count, tt.period, tt.burst, got, want)
		}
	}
}

// What every algorithm does at the edges of cost and capacity, on a key never seen.
func TestFreshKey(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			for _, tt := range []struct {
				count, cost int64
				allowed     bool
				remaining   int64
			}{
				{1, 1, true, 0},
				{1, 0, true, 1},
				{10, 1, true, 9}, // the first call's remaining
				{10, 9, true, 1},
				{10, 10, true, 0},
				{10, 11, false, 10},
				{10, 1<<63 - 1, false, 10},
				{0, 0, true, 0},
				{0, 1, false, 0},
				{100_000, 100_000, true, 0},
			} {
				var c counter
				v := c.take(algorithm.NewParams(kind, tt.count, second, 0), start, tt.cost)
				if v.Allowed != tt.allowed || v.Remaining != tt.remaining {
					t.Errorf("cost %d of %d: got %+v, want %v and %d left", tt.cost, tt.count, v, tt.allowed, tt.remaining)
				}
				if !tt.allowed && (v.Retry != algorithm.Never || v.Reset != 0) {
					t.Errorf("cost %d of %d: got %+v, want retry Never, reset 0", tt.cost, tt.count, v)
				}
				if tt.cost == 0 && v.Reset != 0 {
					t.Errorf("a look at a fresh key has reset %d", v.Reset)
				}
			}
		})
	}
}

// A denied request charges nothing: what was left before it is left after it, however often it is sent.
func TestDenialChargesNothing(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			p := algorithm.NewParams(kind, 10, second, 0)
			var c counter
			c.take(p, start, 8)
			for range 100 {
				if v := c.take(p, start, 3); v.Allowed || v.Remaining != 2 {
					t.Fatalf("got %+v, want a denial with 2 left", v)
				}
			}
			if v := c.take(p, start, 2); !v.Allowed || v.Remaining != 0 {
				t.Fatalf("got %+v, want the 2 that were left", v)
			}
		})
	}
}

// Retry is exact to the microsecond, and so is Reset, from any state: one that this limit wrote, one that another limit of the same
// name wrote, one from the future.
func TestRetryAndResetAreExact(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, uint64(kind)))
			for range 30_000 {
				c, now := randomCounter(r, kind)
				p := randomParams(r, kind)
				cost := 1 + r.Int64N(p.Capacity+1)
				v := c.take(p, now, cost)
				checkVerdict(t, c, p, now, cost, v)
				if t.Failed() {
					return
				}
			}
		})
	}
}

// checkVerdict holds v, the answer to cost at now that left c behind, to what the counter does later.
func checkVerdict(t *testing.T, c counter, p algorithm.Params, now, cost int64, v algorithm.Verdict) {
	t.Helper()
	switch {
	case v.Allowed && v.Retry != 0:
		t.Errorf("allowed with retry: %+v", v)
	case !v.Allowed && cost > p.Capacity && v.Retry != algorithm.Never:
		t.Errorf("%+v: cost %d above capacity is not Never: %+v", p, cost, v)
	case !v.Allowed && cost <= p.Capacity:
		if v.Retry <= 0 || v.Retry == algorithm.Never {
			t.Errorf("%+v %+v at %d: cost %d retry %d", p, c, now, cost, v.Retry)
		} else if early := c.copy().take(p, now+v.Retry-1, cost); early.Allowed {
			t.Errorf("%+v %+v at %d: cost %d allowed 1 us before retry %d", p, c, now, cost, v.Retry)
		} else if late := c.copy().take(p, now+v.Retry, cost); !late.Allowed {
			t.Errorf("%+v %+v at %d: cost %d denied at retry %d: %+v", p, c, now, cost, v.Retry, late)
		}
	}
	if look := c.copy().take(p, now, 0); look.Remaining != v.Remaining || look.Reset != v.Reset {
		t.Errorf("%+v %+v at %d: a look says %+v after %+v", p, c, now, look, v)
	}
	if v.Reset < 0 {
		t.Errorf("%+v %+v at %d: reset %d", p, c, now, v.Reset)
		return
	}
	if after := c.copy().take(p, now+v.Reset, 0); after.Remaining != p.Capacity || after.Reset != 0 {
		t.Errorf("%+v %+v at %d: at reset %d: %+v", p, c, now, v.Reset, after)
	}
	if v.Reset > 0 && p.Count > 0 {
		if before := c.copy().take(p, now+v.Reset-1, 0); before.Reset != 1 {
			t.Errorf("%+v %+v at %d: 1 us before reset %d: %+v", p, c, now, v.Reset, before)
		}
	}
}

// copy returns a counter that shares nothing with c.
func (c *counter) copy() *counter { return &counter{c.state, c.log.Clone()} }

func randomParams(r *rand.Rand, kind algorithm.Kind) algorithm.Params {
	counts := []int64{1, 2, 3, 7, 10, 1 + r.Int64N(50), 999_983, 100_000 + r.Int64N(5e6), 1e15}
	periods := []int64{ms, second, minute, 1 + r.Int64N(hour), day}
	n, bursts := len(counts), []int64{0, 0, 1, 1 + r.Int64N(100)}
	if kind == algorithm.SlidingLog {
		n -= 2
	}
	if kind != algorithm.TokenBucket {
		bursts = []int64{0}
	}
	return algorithm.NewParams(kind, counts[r.IntN(n)], periods[r.IntN(len(periods))], bursts[r.IntN(len(bursts))])
}

// randomCounter returns a counter with a history, under limits that changed and a clock that may have stepped, and the instant after it.
func randomCounter(r *rand.Rand, kind algorithm.Kind) (counter, int64) {
	var c counter
	now := start + r.Int64N(day)
	p := randomParams(r, kind)
	for range r.IntN(6) {
		c.take(p, now, r.Int64N(p.Capacity+1))
		now += r.Int64N([]int64{1, p.Period/4 + 1, p.Period + 1, 3 * p.Period}[r.IntN(4)] + 1)
		switch r.IntN(10) {
		case 0:
			p = randomParams(r, kind)
		case 1:
			now -= r.Int64N(p.Period)
		case 2:
			c.refund(p, now, r.Int64N(p.Capacity+1), 0)
		}
	}
	return c, now
}
