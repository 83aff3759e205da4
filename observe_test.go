package headgate_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
)

// recorder keeps what an Observer was told. seen may be read when nobody asks any more, last at any time.
type recorder struct {
	mu   sync.Mutex
	seen []headgate.Observation
}

func (r *recorder) Observe(_ context.Context, o headgate.Observation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, o)
}

func (r *recorder) last() headgate.Observation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[len(r.seen)-1]
}

// Every decision is seen once, as the caller got it; a refund or a reset is none.
func TestObserverSeesEachDecisionOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		l := limiterOn(t, slow{inMemory(t), 3 * time.Millisecond}, headgate.Config{Observer: &r}, "3/hour", "9/hour")
		var want []headgate.Decision
		for _, n := range []int64{1, 2, 1, 0, 4} {
			d, err := l.AllowN(t.Context(), "k", n)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, d)
		}
		l.Refund(t.Context(), "k", 1)
		l.Reset(t.Context(), "k")
		if len(r.seen) != len(want) {
			t.Fatalf("saw %d decisions, want %d", len(r.seen), len(want))
		}
		for i, o := range r.seen {
			if !same(o.Decision, want[i]) || o.Err != nil || o.Elapsed != 3*time.Millisecond {
				t.Errorf("decision %d: saw %+v, want %+v", i+1, o, want[i])
			}
		}
		if r.seen[1].Cost != 2 || r.seen[3].Cost != 0 || r.seen[4].Cost != 4 {
			t.Errorf("saw the costs %d, %d, %d, want 2, 0, 4", r.seen[1].Cost, r.seen[3].Cost, r.seen[4].Cost)
		}
	})
}

func TestObserverSeesTheLargestCost(t *testing.T) {
	var r recorder
	l := limiterOn(t, inMemory(t), headgate.Config{Observer: &r})
	charge := func(cost int64) headgate.Charge {
		return headgate.Charge{Key: "k", Cost: cost, Limit: headgate.PerSecond(100)}
	}
	if _, err := l.Take(t.Context(), charge(1), charge(7), charge(3)); err != nil {
		t.Fatal(err)
	}
	if len(r.seen) != 1 || r.seen[0].Cost != 7 {
		t.Errorf("saw %+v, want one with cost 7", r.seen)
	}
}

// The Observer learns why the store could not decide, also where the failure mode hid it from the caller.
func TestObserverSeesTheCause(t *testing.T) {
	for mode, source := range map[headgate.FailureMode]headgate.Source{
		headgate.FailClosed: headgate.FromClosed, headgate.FailOpen: headgate.FromOpen, headgate.FailLocal: headgate.FromLocal,
	} {
		var r recorder
		l := limiterOn(t, failing{errBroken}, headgate.Config{Observer: &r, OnStoreError: mode, Logger: quiet()}, "3/s")
		l.Allow(t.Context(), "k")
		if len(r.seen) != 1 || !errors.Is(r.seen[0].Err, errBroken) || r.seen[0].Decision.Source != source {
			t.Errorf("%v: saw %+v, want source %v and the cause", mode, r.seen, source)
		}
	}
	var r recorder
	l := limiterOn(t, inMemory(t), headgate.Config{Observer: &r}, "3/s")
	l.Allow(t.Context(), "")
	if len(r.seen) != 1 || !errors.Is(r.seen[0].Err, headgate.ErrInvalidCharge) {
		t.Errorf("an invalid charge: saw %+v", r.seen)
	}
}

func TestObserverFunc(t *testing.T) {
	calls := 0
	observe := headgate.ObserverFunc(func(context.Context, headgate.Observation) { calls++ })
	mustAllow(t, limiterOn(t, inMemory(t), headgate.Config{Observer: observe}, "3/s"), "k", 1)
	if calls != 1 {
		t.Errorf("called %d times", calls)
	}
}
