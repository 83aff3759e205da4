package algorithm_test

import (
	"testing"

	"github.com/headgate/headgate/internal/algorithm"
)

func TestFixedWindow(t *testing.T) {
	play(t, algorithm.NewParams(algorithm.FixedWindow, 10, minute, 0), []step{
		{59 * second, 0, granted(10, 0)},
		{59 * second, 1, granted(9, minute)}, // the window begins at the first grant
		{60 * second, 9, granted(0, 59*second)},
		{60 * second, 1, denied(0, 59*second, 59*second)},
		{60 * second, 11, denied(0, algorithm.Never, 59*second)},
		{119*second - 1, 1, denied(0, 1, 1)},
		{119 * second, 10, granted(0, minute)}, // 10 and 10 across the edge
		{119 * second, 1, denied(0, minute, minute)},
		{0, 1, denied(0, minute, minute)}, // time that steps back counts as none
		{minute, 1, granted(9, minute)},
	})
	play(t, algorithm.NewParams(algorithm.FixedWindow, 1, ms, 0), []step{
		{0, 1, granted(0, ms)}, {ms - 1, 1, denied(0, 1, 1)}, {ms, 1, granted(0, ms)},
	})
}

func TestAlignedWindow(t *testing.T) {
	play(t, algorithm.NewParams(algorithm.AlignedWindow, 10, minute, 0), []step{
		{59 * second, 0, granted(10, 0)},
		{59 * second, 10, granted(0, second)},
		{59 * second, 1, denied(0, second, second)},
		{minute - 1, 1, denied(0, 1, 1)},
		{minute, 10, granted(0, minute)}, // 20 in a second, across the edge
		{2*minute - 1, 11, denied(0, algorithm.Never, 1)},
		{59 * second, 1, denied(0, second, second)}, // after a step back it counts in the window that the clock shows
		{minute, 1, granted(9, minute)},
	})
}

func TestWindowChange(t *testing.T) {
	for _, kind := range []algorithm.Kind{algorithm.FixedWindow, algorithm.AlignedWindow} {
		limit := func(count, period int64) algorithm.Params { return algorithm.NewParams(kind, count, period, 0) }
		var c counter
		c.take(limit(100, minute), start, 50)
		for _, tt := range []struct {
			params algorithm.Params
			at     int64
			want   algorithm.Verdict
		}{
			{limit(200, minute), second, granted(149, 59*second)},
			{limit(10, minute), second, denied(0, 59*second, 59*second)},
			{limit(10, 5*second), second, denied(0, 4*second, 4*second)}, // it ends no later than the new period after the last write
			{limit(60, hour), minute - 1, granted(9, 1)},                 // and as it would have
			{limit(60, hour), minute, granted(59, hour)},
		} {
			if kind == algorithm.AlignedWindow && tt.params.Period == hour {
				continue // an hour's aligned window takes over at its first grant
			}
			if got := c.copy().take(tt.params, start+tt.at, 1); got != tt.want {
				t.Errorf("kind %d: %+v at %d: %+v, want %+v", kind, tt.params, tt.at, got, tt.want)
			}
		}
	}
}

func TestWindowRefund(t *testing.T) {
	for name, kind := range map[string]algorithm.Kind{"fixed": algorithm.FixedWindow, "aligned": algorithm.AlignedWindow} {
		t.Run(name, func(t *testing.T) {
			p := algorithm.NewParams(kind, 10, minute, 0)
			for _, tt := range []struct {
				name         string
				at, n, taken int64
				want         int64 // remaining, of 10 with 6 taken at 0 and, in the next window, 4
			}{
				{"the window under way is the default", second, 2, 0, 6},
				{"never above the capacity", second, 100, 0, 10},
				{"of this window", second, 2, start, 6},
				{"into the next window", minute + second, 2, start, 6},
				{"of the next window", minute + second, 2, start + minute, 8},
				{"by default of the next window", minute + second, 2, 0, 8},
				{"after all has ended", 10 * minute, 5, 0, 10},
			} {
				var c counter
				c.take(p, start, 6)
				if tt.at > minute {
					c.take(p, start+minute, 4)
				}
				c.refund(p, start+tt.at, tt.n, tt.taken)
				if v := c.take(p, start+tt.at, 0); v.Remaining != tt.want {
					t.Errorf("%s: %d left, want %d", tt.name, v.Remaining, tt.want)
				}
			}
		})
	}
}

// A fixed window that was given back whole is as if never opened: the next grant opens a new one.
func TestFixedWindowGivenBackWhole(t *testing.T) {
	p := algorithm.NewParams(algorithm.FixedWindow, 10, minute, 0)
	var c counter
	c.take(p, start, 6)
	c.refund(p, start+second, 6, 0)
	if v := c.take(p, start+30*second, 1); v != granted(9, minute) {
		t.Errorf("got %+v", v)
	}
}
