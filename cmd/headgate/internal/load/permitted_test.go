package load_test

import (
	"math"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/load"
)

func TestPermitted(t *testing.T) {
	const us = time.Microsecond
	tests := []struct {
		limit string
		d     time.Duration
		fresh bool
		want  int64
	}{
		{"0/s", time.Hour, false, 0},
		{"0/s fixed-window", time.Hour, false, 0},
		{"0/s sliding-window", time.Hour, false, 0},

		{"100/s", 0, false, 100},
		{"100/s", 10*time.Millisecond - us, false, 100},
		{"100/s", 10 * time.Millisecond, false, 101},
		{"100/s", time.Second, false, 200},
		{"100/s", 30 * time.Second, false, 3100},
		{"5/s burst 10", time.Second, false, 15},
		{"5/s burst 10", 10 * time.Second, true, 60},
		{"3/s", 999_999 * us, false, 5},
		{"1000000000000000/s", 366 * 24 * time.Hour, false, math.MaxInt64},

		{"10/s fixed-window", 0, false, 10},
		{"10/s fixed-window", us, false, 20}, // the end of one and the start of the next
		{"10/s fixed-window", time.Second, false, 20},
		{"10/s fixed-window", time.Second + us, false, 30},
		{"10/s fixed-window", time.Second - us, true, 10},
		{"10/s fixed-window", time.Second, true, 20},
		{"10/s fixed-window", 2*time.Second - us, true, 20},
		{"1000000000000000/ms fixed-window", 366 * 24 * time.Hour, false, math.MaxInt64},

		{"10/s aligned-window", 0, true, 10},
		{"10/s aligned-window", time.Second, true, 20},
		{"10/s aligned-window", time.Second + us, true, 30},

		{"10/s sliding-window", 0, false, 10},
		{"10/s sliding-window", us, false, 19},
		{"10/s sliding-window", time.Second - us, false, 19},
		{"10/s sliding-window", time.Second, false, 20},
		{"10/s sliding-window", 10 * time.Second, false, 110},
		{"1/s sliding-window", time.Second - us, false, 1},

		{"10/s sliding-log", 0, false, 10},
		{"10/s sliding-log", time.Second - us, false, 10},
		{"10/s sliding-log", time.Second, false, 20},
		{"10/s sliding-log", 2*time.Second - us, false, 20},
	}
	for _, tt := range tests {
		if got := load.Permitted(parse(t, tt.limit), tt.d, tt.fresh); got != tt.want {
			t.Errorf("%s in %v, fresh %v: %d, want %d", tt.limit, tt.d, tt.fresh, got, tt.want)
		}
	}
}

// More time never permits less, and each algorithm permits what the most generous of them does at the most.
func TestPermittedGrows(t *testing.T) {
	random := seeded(1)
	for range 10_000 {
		l := headgate.Limit{
			Algorithm: headgate.Algorithm(random.IntN(5)), Count: random.Int64N(1000), Period: time.Duration(1+random.Int64N(1e7)) * time.Microsecond,
		}
		d := time.Duration(random.Int64N(int64(5 * l.Period)))
		more := d + time.Duration(random.Int64N(int64(l.Period)))
		a, b, fresh := load.Permitted(l, d, false), load.Permitted(l, more, false), load.Permitted(l, d, true)
		if a > b || fresh > a {
			t.Fatalf("%v: %d in %v, %d in %v, %d when fresh", l, a, d, b, more, fresh)
		}
	}
}
