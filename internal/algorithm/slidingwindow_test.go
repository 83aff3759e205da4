package algorithm_test

import (
	"testing"

	"github.com/headgate/headgate/internal/algorithm"
)

func TestSlidingWindow(t *testing.T) {
	for name, tt := range map[string]struct {
		count, period int64
		steps         []step
	}{
		"the weight is rounded up": {10, second, []step{
			{0, 10, granted(0, 2*second)},
			{0, 1, denied(0, second+100*ms, 2*second)},
			{second - 1, 1, denied(0, 100*ms+1, second+1)},
			{second, 1, denied(0, 100*ms, second)},           // weight 10
			{second + 1, 0, granted(0, second-1)},            // 9.99999 counts as 10
			{second + 100*ms - 1, 1, denied(0, 1, 900*ms+1)}, // 9.00001 counts as 10
			{second + 100*ms, 1, granted(0, 1900*ms)},        // 9
			{second + 500*ms, 0, granted(4, 1500*ms)},        // 5 and 1
			{second + 500*ms, 5, denied(4, 100*ms, 1500*ms)}, // 4 and 1 at 600 ms
			{2*second - 1, 9, denied(8, 1, second+1)},        // the last microsecond of a window weighs 1
			{2 * second, 9, granted(0, 2*second)},            // 1 at its full weight
			{2 * second, 1, denied(0, second, 2*second)},     // 1 and 9: until the 1 has gone
		}},
		"limit 1": {1, second, []step{
			{0, 1, granted(0, 2*second)},
			{second, 1, denied(0, second, second)}, // its longest wait: two periods, P + P/C
			{2*second - 1, 1, denied(0, 1, 1)},
			{2 * second, 1, granted(0, 2*second)},
		}},
		"cost of the whole count": {4, second, []step{
			{250 * ms, 4, granted(0, 1750*ms)},
			{250 * ms, 4, denied(0, 1750*ms, 1750*ms)},
			{250 * ms, 5, denied(0, algorithm.Never, 1750*ms)},
			{2 * second, 4, granted(0, 2*second)},
		}},
		"the worst case: 2*Count - 1 in less than a period": {10, second, []step{
			{second - 1, 10, granted(0, second+1)},
			{second + 900*ms, 9, granted(0, 1100*ms)},
			{2*second - 2, 1, denied(0, 2, second+2)},
		}},
		"time that steps back": {10, second, []step{
			{hour, 10, granted(0, 2*second)},
			{500 * ms, 1, denied(0, 600*ms, 1500*ms)},
			{1100 * ms, 1, granted(0, 1900*ms)},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, algorithm.NewParams(algorithm.SlidingWindow, tt.count, tt.period, 0), tt.steps)
		})
	}
}

func TestSlidingWindowLargest(t *testing.T) {
	const most, longest = int64(1e15), 366 * day
	p := algorithm.NewParams(algorithm.SlidingWindow, most, longest, 0)
	base := start / longest * longest
	var c counter
	c.take(p, base, most)
	for _, elapsed := range []int64{0, 1, longest / 3, longest - 1} {
		want := most - ceil(most, longest-elapsed, longest)
		if v := c.copy().take(p, base+longest+elapsed, 0); v.Remaining != want {
			t.Errorf("%d into the next window: %d left, want %d", elapsed, v.Remaining, want)
		}
	}
}

// After a cut below what is in use, the key waits for the rest of the window, and what was granted then counts for one less than the new
// count.
func TestSlidingWindowCut(t *testing.T) {
	p := algorithm.NewParams(algorithm.SlidingWindow, 10, second, 0)
	var c counter
	c.take(algorithm.NewParams(algorithm.SlidingWindow, 100, second, 0), start, 60)
	for _, tt := range []struct {
		at, cost int64
		want     algorithm.Verdict
	}{
		{0, 1, denied(0, second, 2*second)},
		{second - 1, 1, denied(0, 1, second+1)},
		{0, 10, denied(0, 2*second, 2*second)},
		{second, 1, granted(0, 2*second)},
		{second, 2, denied(1, 111_112, second)},
		{1500 * ms, 1, granted(4, 1500*ms)},
	} {
		if got := c.copy().take(p, start+tt.at, tt.cost); got != tt.want {
			t.Errorf("cost %d at %d: %+v, want %+v", tt.cost, tt.at, got, tt.want)
		}
	}
}

func TestSlidingWindowRefund(t *testing.T) {
	p := algorithm.NewParams(algorithm.SlidingWindow, 10, second, 0)
	for _, tt := range []struct {
		name         string
		at, n, taken int64
		want         int64 // remaining, of 10 with 6 taken at 0 and 2 at 1 s
	}{
		{"of the window under way", 1500 * ms, 1, start + second, 6},
		{"by default of the window under way", 1500 * ms, 1, 0, 6},
		{"never more than it holds", 1500 * ms, 6, 0, 7},
		{"of the window before, at its weight", 1500 * ms, 4, start, 7},
		{"of one long gone", 1500 * ms, 4, start - second, 5},
		{"into the window after", 2500 * ms, 2, start, 9},
		{"after all has ended", 10 * second, 2, 0, 10},
	} {
		var c counter
		c.take(p, start, 6)
		c.take(p, start+second, 2)
		c.refund(p, start+tt.at, tt.n, tt.taken)
		if v := c.take(p, start+tt.at, 0); v.Remaining != tt.want {
			t.Errorf("%s: %d left, want %d", tt.name, v.Remaining, tt.want)
		}
	}
}
