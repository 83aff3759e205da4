package algorithm_test

import (
	"testing"

	"github.com/headgate/headgate/internal/algorithm"
)

func TestSlidingLog(t *testing.T) {
	log := func(count, period int64) algorithm.Params {
		return algorithm.NewParams(algorithm.SlidingLog, count, period, 0)
	}
	for name, tt := range map[string]struct {
		params algorithm.Params
		steps  []step
	}{
		"entries leave one by one": {log(5, second), []step{
			{0, 2, granted(3, second)},
			{400 * ms, 3, granted(0, second)},
			{400 * ms, 1, denied(0, 600*ms, second)},
			{400 * ms, 2, denied(0, 600*ms, second)},
			{400 * ms, 3, denied(0, second, second)}, // the first entry makes room for 2 alone
			{400 * ms, 6, denied(0, algorithm.Never, second)},
			{second - 1, 1, denied(0, 1, 400*ms+1)},
			{second, 1, granted(1, second)}, // a grant at t counts while now < t + period
			{second, 2, denied(1, 400*ms, second)},
			{1400 * ms, 4, granted(0, second)},
		}},
		"5 of 10 across a window's edge": {log(5, second), []step{
			{999 * ms, 5, granted(0, second)},
			{1001 * ms, 5, denied(0, 998*ms, 998*ms)},
			{1999 * ms, 5, granted(0, second)},
		}},
		"time that steps back counts as none": {log(5, second), []step{
			{hour, 2, granted(3, second)},
			{hour + 400*ms, 3, granted(0, second)},
			{0, 1, denied(0, 600*ms, second)},
			{600*ms - 1, 1, denied(0, 1, 400*ms+1)},
			{600 * ms, 2, granted(0, second)},
			{second, 3, granted(0, second)},
			{2 * second, 0, granted(5, 0)},
		}},
		"grants of one instant are one": {log(100_000, second), []step{
			{0, 1, granted(99_999, second)}, {0, 99_999, granted(0, second)}, {0, 1, denied(0, second, second)},
			{second, 100_000, granted(0, second)},
		}},
	} {
		t.Run(name, func(t *testing.T) { play(t, tt.params, tt.steps) })
	}
}

// A log that is used for long keeps no more entries than its window holds.
func TestSlidingLogForgets(t *testing.T) {
	p := algorithm.NewParams(algorithm.SlidingLog, 50, second, 0)
	var c counter
	for i := range int64(100_000) {
		now := start + i*20*ms
		if v := c.take(p, now, 1); !v.Allowed {
			t.Fatalf("denied at its own rate, at step %d: %+v", i, v)
		}
		if n := c.log.Len(); n > 50 {
			t.Fatalf("%d entries at step %d", n, i)
		}
	}
	last := start + 99_999*20*ms
	if got := c.log.Dead(); got != last+second {
		t.Errorf("dead at %d, want %d", got, last+second)
	}
	c.take(p, last+second, 51)
	if c.log.Len() != 0 || c.log.Dead() != 0 {
		t.Errorf("%d entries, dead at %d, after the period", c.log.Len(), c.log.Dead())
	}
}

// A cost of 0 changes nothing: not even entries whose time is over are dropped.
func TestSlidingLogLook(t *testing.T) {
	p := algorithm.NewParams(algorithm.SlidingLog, 5, second, 0)
	var c counter
	c.take(p, start, 5)
	if v := c.take(p, start+hour, 0); v != granted(5, 0) || c.log.Len() != 1 {
		t.Errorf("got %+v and %d entries", v, c.log.Len())
	}
	if v := c.log.Grant(p, start, 0); v != granted(0, second) || c.log.Len() != 1 {
		t.Errorf("a grant of nothing: %+v and %d entries", v, c.log.Len())
	}
}

func TestSlidingLogChange(t *testing.T) {
	var c counter
	c.take(algorithm.NewParams(algorithm.SlidingLog, 10, second, 0), start, 4)
	c.take(algorithm.NewParams(algorithm.SlidingLog, 10, second, 0), start+500*ms, 4)
	for _, tt := range []struct {
		count, period, at, cost int64
		want                    algorithm.Verdict
	}{
		{20, second, 600 * ms, 12, granted(0, second)},
		{5, second, 600 * ms, 1, denied(0, 400*ms, 900*ms)},
		{5, second, 600 * ms, 2, denied(0, 900*ms, 900*ms)},
		{10, 200 * ms, 600 * ms, 6, granted(0, 200*ms)},            // over the new period only the second grant counts
		{10, 10 * second, 1400 * ms, 3, denied(2, 100*ms, 100*ms)}, // and a log ends as it would have
	} {
		p := algorithm.NewParams(algorithm.SlidingLog, tt.count, tt.period, 0)
		if got := c.copy().take(p, start+tt.at, tt.cost); got != tt.want {
			t.Errorf("%+v cost %d at %d: %+v, want %+v", p, tt.cost, tt.at, got, tt.want)
		}
	}
}

func TestSlidingLogRefund(t *testing.T) {
	p := algorithm.NewParams(algorithm.SlidingLog, 10, second, 0)
	for _, tt := range []struct {
		name         string
		at, n, taken int64
		want         algorithm.Verdict // of a look, with 4 granted at 0 and 3 at 0.5 s
	}{
		{"of a grant", 600 * ms, 2, start + 500*ms, granted(5, 900*ms)},
		{"of a grant, never more than it was", 600 * ms, 100, start + 500*ms, granted(6, 400*ms)},
		{"of no grant", 600 * ms, 2, start + 1, granted(3, 900*ms)},
		{"by default of the oldest", 600 * ms, 5, 0, granted(8, 900*ms)},
		{"never more than there is", 600 * ms, 100, 0, granted(10, 0)},
		{"of a grant that no longer counts", 1200 * ms, 4, start, granted(7, 300*ms)},
	} {
		var c counter
		c.take(p, start, 4)
		c.take(p, start+500*ms, 3)
		c.refund(p, start+tt.at, tt.n, tt.taken)
		if got := c.take(p, start+tt.at, 0); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
