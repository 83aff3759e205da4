package algorithm_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/headgate/headgate/internal/algorithm"
)

func TestTokenBucket(t *testing.T) {
	bucket := func(count, period, burst int64) algorithm.Params {
		return algorithm.NewParams(algorithm.TokenBucket, count, period, burst)
	}
	for name, tt := range map[string]struct {
		params algorithm.Params
		steps  []step
	}{
		"10 a second": {bucket(10, second, 0), []step{
			{0, 10, granted(0, second)},
			{0, 1, denied(0, 100*ms, second)},
			{100*ms - 1, 1, denied(0, 1, 900*ms+1)},
			{100 * ms, 1, granted(0, second)},
			{100 * ms, 0, granted(0, second)},
			{250 * ms, 0, granted(1, 850*ms)}, // half a token in use makes a whole one unavailable
			{250 * ms, 2, denied(1, 50*ms, 850*ms)},
			{10 * second, 0, granted(10, 0)}, // never more than the capacity
		}},
		"limit 1": {bucket(1, second, 0), []step{
			{0, 1, granted(0, second)},
			{second - 1, 1, denied(0, 1, 1)},
			{second, 1, granted(0, second)},
			{second, 2, denied(0, algorithm.Never, second)},
		}},
		"the seeds' 1 1 1 0 0, then 1 after 1.1 s": {bucket(1, second, 3), []step{
			{0, 1, granted(2, second)}, {0, 1, granted(1, 2*second)}, {0, 1, granted(0, 3*second)},
			{0, 1, denied(0, second, 3*second)}, {0, 1, denied(0, second, 3*second)},
			{1100 * ms, 1, granted(0, 2900*ms)},
			{1100 * ms, 1, denied(0, 900*ms, 2900*ms)},
		}},
		"7 a minute keeps its remainder": {bucket(7, minute, 0), []step{
			{0, 1, granted(6, 8_571_429)}, // 60/7 s = 8,571,428.57 us
			{0, 6, granted(0, minute)},
			{8_571_428, 1, denied(0, 1, 51_428_572)},
			{8_571_429, 1, granted(0, minute)},
			{17_142_857, 1, denied(0, 1, 51_428_572)}, // 2 * 60/7 = 17,142,857.14
			{17_142_858, 1, granted(0, minute)},
			{25_714_285, 1, denied(0, 1, 51_428_573)}, // 3 * 60/7 = 25,714,285.71: a microsecond sooner than from the last
			{25_714_286, 1, granted(0, minute)},
		}},
		"burst above count": {bucket(1, second, 5), []step{
			{0, 5, granted(0, 5*second)},
			{0, 5, denied(0, 5*second, 5*second)},
			{0, 6, denied(0, algorithm.Never, 5*second)},
			{5*second - 1, 5, denied(4, 1, 1)},
			{5 * second, 5, granted(0, 5*second)},
		}},
		"burst below count": {bucket(100, second, 2), []step{
			{0, 2, granted(0, 20*ms)},
			{10 * ms, 1, granted(0, 20*ms)},
			{10 * ms, 3, denied(0, algorithm.Never, 20*ms)},
		}},
		"count 0": {bucket(0, second, 5), []step{
			{0, 0, granted(0, 0)},
			{0, 1, denied(0, algorithm.Never, 0)},
			{hour, 1, denied(0, algorithm.Never, 0)},
		}},
		"more than one a microsecond": {bucket(5_000_000, second, 0), []step{
			{0, 5_000_000, granted(0, second)},
			{0, 5, denied(0, 1, second)},
			{0, 6, denied(0, 2, second)},
			{1, 5, granted(0, second)},
			{1, 1, denied(0, 1, second)},
		}},
		"time that steps back counts as none": {bucket(10, second, 0), []step{
			{hour, 10, granted(0, second)},
			{0, 1, denied(0, 100*ms, second)},
			{100 * ms, 1, granted(0, second)},
		}},
	} {
		t.Run(name, func(t *testing.T) { play(t, tt.params, tt.steps) })
	}
}

// A key that takes whatever is left, at random instants, gets the burst and then exactly what the rate gives: nothing is lost to
// rounding, however uneven the rate.
func TestTokenBucketIsExactOverAnHour(t *testing.T) {
	for _, tt := range []struct{ count, period, burst int64 }{
		{7, minute, 0}, {3, second, 0}, {1, second, 2}, {999_983, second, 0}, {1_000_003, second, 0},
		{17_000_023, second, 5_000_000}, {11, 7 * second, 0}, {1e12, second, 0}, {13, 999_999_937, 29},
	} {
		p := algorithm.NewParams(algorithm.TokenBucket, tt.count, tt.period, tt.burst)
		r := rand.New(rand.NewPCG(2, uint64(tt.count)))
		var c counter
		total, elapsed := int64(0), int64(0)
		take := func() {
			left := c.take(p, start+elapsed, 0).Remaining
			if v := c.take(p, start+elapsed, left); !v.Allowed || v.Remaining != 0 {
				t.Fatalf("%+v: took %d left at %d: %+v", p, left, elapsed, v)
			}
			total += left
		}
		for take(); elapsed < hour; take() {
			elapsed = min(hour, elapsed+1+r.Int64N(p.Life/2))
		}
		rate := new(big.Int).Mul(big.NewInt(tt.count), big.NewInt(hour))
		want := p.Capacity + rate.Div(rate, big.NewInt(tt.period)).Int64()
		if total != want {
			t.Errorf("%+v: %d tokens in an hour, want %d", p, total, want)
		}
	}
}

// The largest limits that are valid: every product passes through 128 bits, and none is lost.
func TestTokenBucketLargest(t *testing.T) {
	const most, eightYears, longest = int64(1e15), 2922 * day, 366 * day
	for _, tt := range []struct{ count, period, burst int64 }{
		{most, ms, 0}, {most, longest, most}, {most, longest, 0}, {1, longest, 7}, {most / 1000, longest, 7 * most / 1000}, {most, 1, 1},
		{most, eightYears, most},
	} {
		p := algorithm.NewParams(algorithm.TokenBucket, tt.count, tt.period, tt.burst)
		r := rand.New(rand.NewPCG(3, uint64(tt.period)))
		var c counter
		if v := c.take(p, start, p.Capacity); !v.Allowed || v.Remaining != 0 || v.Reset != ceil(p.Capacity, p.Period, p.Count) {
			t.Fatalf("%+v: took all: %+v", p, v)
		}
		for range 200 {
			cost := 1 + r.Int64N(p.Capacity)
			v := c.copy().take(p, start, cost)
			if want := ceil(cost, p.Period, p.Count); v.Allowed || v.Retry != want {
				t.Fatalf("%+v: cost %d of an empty bucket: %+v, want retry %d", p, cost, v, want)
			}
		}
		if v := c.take(p, start, math.MaxInt64); v.Allowed || v.Retry != algorithm.Never {
			t.Fatalf("%+v: the largest cost: %+v", p, v)
		}
	}
}

// ceil returns a*b/c rounded up, by another way than the code under test.
func ceil(a, b, c int64) int64 {
	n := new(big.Int).Mul(big.NewInt(a), big.NewInt(b))
	n.Add(n, big.NewInt(c-1))
	return n.Div(n, big.NewInt(c)).Int64()
}

func TestTokenBucketChange(t *testing.T) {
	wide := algorithm.NewParams(algorithm.TokenBucket, 100, second, 0)
	narrow := algorithm.NewParams(algorithm.TokenBucket, 10, second, 0)
	var c counter
	c.take(wide, start, 90)
	if v := c.copy().take(narrow, start, 1); v != denied(0, 100*ms, second) {
		t.Errorf("cut below what is in use: %+v, want a full bucket's wait", v)
	}
	if v := c.copy().take(narrow, start+100*ms, 1); v != granted(0, second) {
		t.Errorf("after that wait: %+v", v)
	}
	if v := c.copy().take(algorithm.NewParams(algorithm.TokenBucket, 1000, second, 0), start, 910); v != granted(0, second) {
		t.Errorf("a raise applies at once and keeps the 90 in use: %+v", v)
	}
}

func TestTokenBucketRefund(t *testing.T) {
	p := algorithm.NewParams(algorithm.TokenBucket, 10, second, 0)
	var c counter
	c.refund(p, start, 5, 0)
	if v := c.take(p, start, 0); v != granted(10, 0) {
		t.Errorf("refund to a fresh key: %+v", v)
	}
	c.take(p, start, 6)
	c.refund(p, start, 2, 0)
	if v := c.take(p, start, 0); v != granted(6, 400*ms) {
		t.Errorf("2 of 6 given back: %+v", v)
	}
	c.refund(p, start+50*ms, 100, 0)
	if v := c.take(p, start+50*ms, 0); v != granted(10, 0) {
		t.Errorf("more than in use given back: %+v", v)
	}
}
