package load_test

import (
	"math"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/load"
)

// The spacing is exact over any length of time, also where it is no whole number of nanoseconds.
func TestConstant(t *testing.T) {
	for _, tt := range []struct {
		count  int64
		period time.Duration
		n      int64 // this arrival, from 0
		want   time.Duration
	}{
		{1, time.Second, 0, 0},
		{5000, time.Second, 1, 200 * time.Microsecond},
		{3, time.Second, 1, 333_333_333},
		{3, time.Second, 3_000_000, 1_000_000 * time.Second},
		{7, time.Minute, 7_000, 1000 * time.Minute},
		{999_983, time.Second, 999_983, time.Second},
		{1, 366 * 24 * time.Hour, 1000, math.MaxInt64}, // does not fit
	} {
		arrivals := load.Constant(tt.count, tt.period)
		due := arrivals()
		for range tt.n {
			next := arrivals()
			if next < due {
				t.Fatalf("%d per %v: %v after %v", tt.count, tt.period, next, due)
			}
			due = next
		}
		if due != tt.want {
			t.Errorf("%d per %v: arrival %d at %v, want %v", tt.count, tt.period, tt.n, due, tt.want)
		}
	}
}

// Of random arrivals there are as many as asked for, and their gaps vary as much as they are long.
func TestPoisson(t *testing.T) {
	const n = 100_000
	arrivals := load.Poisson(1000, time.Second, seeded(1))
	last, sum, squares := time.Duration(0), 0.0, 0.0
	for range n {
		due := arrivals()
		gap := (due - last).Seconds()
		if gap < 0 {
			t.Fatalf("%v after %v", due, last)
		}
		last, sum, squares = due, sum+gap, squares+gap*gap
	}
	mean := sum / n
	deviation := math.Sqrt(squares/n - mean*mean)
	if math.Abs(mean-0.001) > 0.00002 || math.Abs(deviation-0.001) > 0.00002 {
		t.Errorf("gaps of %v on average, deviation %v, want 0.001 for both", mean, deviation)
	}
}
