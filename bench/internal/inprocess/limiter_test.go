package inprocess

import (
	"testing"
	"time"
)

// Every limiter is set up to grant what it is compared at: a hundred of each key at once, and no more.
func TestLimitersLimit(t *testing.T) {
	for _, l := range limiters {
		ask, err := l.open(quota{Count: 100, Period: time.Hour}, 2)
		if err != nil {
			t.Errorf("%s: %v", l.name, err)
			continue
		}
		granted := map[string]int{}
		for range 150 {
			for _, key := range []string{"a", "b"} {
				if ask(key) {
					granted[key]++
				}
			}
		}
		want := 100
		if !l.limited {
			want = 150
		}
		// One that does not tell keys of one place apart may have both in one.
		shared := l.name == casName && granted["a"]+granted["b"] == want
		if (granted["a"] != want || granted["b"] != want) && !shared {
			t.Errorf("%s granted %v, want %d of each key", l.name, granted, want)
		}
	}
}

func TestPermits(t *testing.T) {
	q := quota{Count: 100, Period: time.Second}
	if n := (limiter{bucket: true}).permits(q)(time.Second); n != 200 {
		t.Errorf("a bucket permits %d in a second, want 200", n)
	}
	if n := (limiter{}).permits(q)(time.Second); n != 300 {
		t.Errorf("windows permit %d in a second, want 300", n)
	}
}

func TestUnknownLimiter(t *testing.T) {
	if _, err := named("nobody's"); err == nil {
		t.Error("found a limiter of nobody's")
	}
}

func TestPerCall(t *testing.T) {
	s := speed{Calls: 1000, Elapsed: time.Millisecond, Allocations: 1004} // four of the measurement
	if seconds, allocations := s.perCall(); seconds != 1e-6 || allocations != 1 {
		t.Errorf("%v seconds, %v allocations; want 1e-06, 1", seconds, allocations)
	}
}
