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

// Those who name one line are served in order, whatever they ask for; who stands in another is not held up.
func TestWaitChargesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiterOn(t, inMemory(t), headgate.Config{})
		limit := headgate.Limit{Count: 10, Period: time.Second, Burst: 3}
		begin := time.Now()
		var wg sync.WaitGroup
		at := make([]time.Duration, 5)
		start := func(i int, line, key string, cost int64) {
			wg.Go(func() {
				extra := headgate.Charge{Key: "all", Cost: 1, Limit: headgate.PerDay(100)}
				if err := l.WaitCharges(t.Context(), line, headgate.Charge{Key: key, Cost: cost, Limit: limit}, extra); err != nil {
					t.Error(err)
				}
				at[i] = time.Since(begin)
			})
			synctest.Wait()
		}
		start(0, "line", "a", 3)
		start(1, "line", "a", 2)    // waits
		start(2, "line", "b", 1)    // has room, and stands behind it
		start(3, "another", "b", 1) // does not
		start(4, "line", "a", 1)
		wg.Wait()
		want := []time.Duration{0, 2 * tenth, 2 * tenth, 0, 3 * tenth}
		for i := range want {
			if at[i] != want[i] {
				t.Errorf("served at %v, want %v", at, want)
				break
			}
		}
	})
}

func TestWaitChargesErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiterOn(t, inMemory(t), headgate.Config{})
		c := headgate.Charge{Key: "k", Cost: 2, Limit: headgate.PerHour(1)}
		if err := l.WaitCharges(t.Context(), "k", c); !errors.Is(err, headgate.ErrExceedsCapacity) {
			t.Errorf("%v, want ErrExceedsCapacity", err)
		}
		if err := l.WaitCharges(t.Context(), "k", headgate.Charge{Cost: 1, Limit: headgate.PerHour(1)}); !errors.Is(err, headgate.ErrInvalidCharge) {
			t.Errorf("%v, want ErrInvalidCharge", err)
		}
		c.Cost = 1
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := l.WaitCharges(ctx, "k", c); err != nil {
			t.Error(err)
		}
		if err := l.WaitCharges(ctx, "k", c); !errors.Is(err, headgate.ErrWouldExceedDeadline) {
			t.Errorf("%v, want ErrWouldExceedDeadline", err)
		}
		cancel()
		if err := l.WaitCharges(ctx, "k", c); err != context.Canceled {
			t.Errorf("%v, want context.Canceled", err)
		}
	})
}

// GiveBack undoes what was charged, where it was: in the store, in process, or nowhere.
func TestGiveBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		window := headgate.Limit{Algorithm: headgate.FixedWindow, Count: 8, Period: time.Hour}
		first, second := headgate.Charge{Key: "a", Cost: 3, Limit: window}, headgate.Charge{Key: "b", Cost: 2, Limit: headgate.PerHour(8)}
		memory := inMemory(t)
		tests := map[headgate.Source]*headgate.Limiter{
			headgate.FromStore: limiterOn(t, memory, headgate.Config{}),
			headgate.FromLocal: limiterOn(t, hanging{}, headgate.Config{OnStoreError: headgate.FailLocal, Logger: quiet(), Timeout: time.Millisecond}),
			headgate.FromOpen:  limiterOn(t, hanging{}, headgate.Config{OnStoreError: headgate.FailOpen, Logger: quiet(), Timeout: time.Millisecond}),
		}
		for source, l := range tests {
			for range 4 { // without giving back, the third would be denied
				d, err := l.Take(t.Context(), first, second)
				if err != nil || !d.Allowed || d.Source != source {
					t.Errorf("%v: %+v, %v", source, d, err)
				}
				if err := l.GiveBack(t.Context(), d, first, second); err != nil {
					t.Errorf("%v: %v", source, err)
				}
			}
		}
		l := tests[headgate.FromStore]
		granted, err := l.Take(t.Context(), first)
		if err != nil {
			t.Fatal(err)
		}
		denied, err := l.Take(t.Context(), headgate.Charge{Key: "a", Cost: 8, Limit: window})
		if err != nil || denied.Allowed {
			t.Errorf("%+v, %v; want a denial", denied, err)
		}
		if err := l.GiveBack(t.Context(), denied, first); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		if _, err := l.Take(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		if err := l.GiveBack(t.Context(), granted, first); err != nil { // of a window that has ended
			t.Error(err)
		}
		if d, err := l.Take(t.Context(), headgate.Charge{Key: "a", Limit: window}); err != nil || d.Remaining != 5 {
			t.Errorf("%d left (%v), want 5", d.Remaining, err)
		}
	})
}
