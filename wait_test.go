package headgate_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
)

// Every test here runs in a bubble: time is its own, and no goroutine may be left when it ends.

// waiters starts Waits of one token each, in order, and collects what becomes of them. After start each of them is in line.
type waiters struct {
	t       *testing.T
	limiter *headgate.Limiter
	begin   time.Time
	wg      sync.WaitGroup
	mu      sync.Mutex
	served  []int           // in the order of being served
	at      []time.Duration // when, since begin
	failed  map[int]error
}

func newWaiters(t *testing.T, l *headgate.Limiter) *waiters {
	return &waiters{t: t, limiter: l, begin: time.Now(), failed: make(map[int]error)}
}

func (w *waiters) start(ctx context.Context, id int, key string) {
	w.wg.Go(func() {
		err := w.limiter.Wait(ctx, key, 1)
		w.mu.Lock()
		defer w.mu.Unlock()
		if err != nil {
			w.failed[id] = err
			return
		}
		w.served = append(w.served, id)
		w.at = append(w.at, time.Since(w.begin))
	})
	synctest.Wait()
}

// expect waits for all and compares who was served, and when.
func (w *waiters) expect(served []int, at ...time.Duration) {
	w.t.Helper()
	w.wg.Wait()
	if !slices.Equal(w.served, served) || !slices.Equal(w.at, at) {
		w.t.Errorf("served %v at %v, want %v at %v; failed: %v", w.served, w.at, served, at, w.failed)
	}
}

const tenth = 100 * time.Millisecond

func TestWaitInOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiters(t, limiterOn(t, inMemory(t), headgate.Config{}, "10/s burst 1"))
		for id := range 6 {
			w.start(t.Context(), id, "k")
		}
		w.expect([]int{0, 1, 2, 3, 4, 5}, 0, tenth, 2*tenth, 3*tenth, 4*tenth, 5*tenth)
	})
}

// Many waiters are served at exactly the limit's rate: the burst at once, then one each period.
func TestWaitAtTheLimitsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiters(t, limiterOn(t, inMemory(t), headgate.Config{}, "7/s"))
		for id := range 707 {
			w.start(t.Context(), id, "k")
		}
		w.wg.Wait()
		if got := time.Since(w.begin); len(w.served) != 707 || got != 100*time.Second {
			t.Errorf("%d served in %v, want 707 in 100s", len(w.served), got)
		}
		for i := 7; i < len(w.at); i++ { // token i is there i-6 sevenths of a second after the burst, rounded up to a microsecond
			want := time.Duration((int64(i-6)*1e6+6)/7) * time.Microsecond
			if w.at[i] != want {
				t.Fatalf("token %d at %v, want %v", i, w.at[i], want)
			}
		}
	})
}

// A waiter that is cancelled leaves the line and takes nothing with it, wherever it stood.
func TestWaitCancelled(t *testing.T) {
	for name, cancelled := range map[string]int{"the head": 0, "in the middle": 2, "the last": 4} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := limiterOn(t, inMemory(t), headgate.Config{}, "10/s burst 1")
				mustAllow(t, l, "k", 1)
				w := newWaiters(t, l)
				ctx, cancel := context.WithCancel(t.Context())
				var served []int
				for id := range 5 {
					of := t.Context()
					if id == cancelled {
						of = ctx
					} else {
						served = append(served, id)
					}
					w.start(of, id, "k")
				}
				time.Sleep(tenth / 2)
				cancel()
				w.expect(served, tenth, 2*tenth, 3*tenth, 4*tenth)
				if err := w.failed[cancelled]; err != context.Canceled {
					t.Errorf("the one cancelled: %v", err)
				}
			})
		})
	}
}

// All of a line cancelled at once: nothing was charged.
func TestWaitAllCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiterOn(t, inMemory(t), headgate.Config{}, "3/hour fixed-window")
		mustAllow(t, l, "k", 2)
		ctx, cancel := context.WithCancel(t.Context())
		w := newWaiters(t, l)
		for id := range 50 {
			w.start(ctx, id, "k") // the first is served
		}
		cancel()
		w.expect([]int{0}, 0)
		if len(w.failed) != 49 {
			t.Errorf("%d failed, want 49", len(w.failed))
		}
		left(t, l, "k", 0)
		time.Sleep(time.Hour)
		left(t, l, "k", 3)
	})
}

// A waiter that is cancelled while the store decides gets its tokens back to the key, to the last one.
func TestWaitCancelledWhileTaking(t *testing.T) {
	for _, limit := range []string{"5/hour", "5/hour fixed-window", "5/hour aligned-window", "5/hour sliding-window", "5/hour sliding-log"} {
		synctest.Test(t, func(t *testing.T) {
			store := slow{inMemory(t), 10 * time.Millisecond}
			l := limiterOn(t, store, headgate.Config{}, limit, "50/hour")
			mustAllow(t, l, "k", 1)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- l.Wait(ctx, "k", 3) }()
			time.Sleep(5 * time.Millisecond)
			cancel()
			if err := <-done; err != context.Canceled {
				t.Errorf("%s: %v, want context.Canceled", limit, err)
			}
			left(t, l, "k", 4)
		})
	}
}

// What was granted in process while the store was away is given back as well.
func TestWaitCancelledWhileTakingLocally(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := headgate.Config{OnStoreError: headgate.FailLocal, Logger: quiet(), Timeout: 10 * time.Millisecond, Replicas: func() int { return 2 }}
		l := limiterOn(t, hanging{}, cfg, "10/hour", "20/hour fixed-window")
		mustAllow(t, l, "k", 1)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		if err := l.Wait(ctx, "k", 3); err != context.DeadlineExceeded {
			t.Errorf("%v, want context.DeadlineExceeded", err)
		}
		left(t, l, "k", 4)
	})
}

// unpaying is a store that decides after a while and cannot refund.
type unpaying struct{ slow }

func (unpaying) Refund(context.Context, headgate.Charge, ...headgate.Charge) error { return errBroken }

func TestWaitCannotGiveBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiterOn(t, unpaying{slow{inMemory(t), 10 * time.Millisecond}}, headgate.Config{}, "5/hour")
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		err := l.Wait(ctx, "k", 1)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, headgate.ErrStore) || !errors.Is(err, errBroken) {
			t.Errorf("%v, want the end of the context and the store's error", err)
		}
	})
}

// A deadline that is known to be too short fails at once and charges nothing.
func TestWaitDeadlineTooShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiterOn(t, inMemory(t), headgate.Config{}, "10/s burst 1")
		mustAllow(t, l, "k", 1)
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), tenth-1)
		defer cancel()
		if err := l.Wait(ctx, "k", 1); !errors.Is(err, headgate.ErrWouldExceedDeadline) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want ErrWouldExceedDeadline", err)
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("it took %v to say so", took)
		}
		ctx, cancel = context.WithTimeout(t.Context(), tenth+1)
		defer cancel()
		if err := l.Wait(ctx, "k", 1); err != nil || time.Since(begin) != tenth {
			t.Errorf("a deadline just long enough: %v after %v", err, time.Since(begin))
		}
	})
}

func TestWaitContextEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiterOn(t, inMemory(t), headgate.Config{}, "5/hour")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, n := range []int64{0, 1, 99} {
			if err := l.Wait(ctx, "k", n); err != context.Canceled {
				t.Errorf("for %d: %v", n, err)
			}
		}
		left(t, l, "k", 5)
		if err := l.Wait(t.Context(), "k", 0); err != nil {
			t.Errorf("for nothing: %v", err)
		}
	})
}

// More than the capacity fails at once, also behind others, and charges nothing.
func TestWaitAboveCapacity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		l := limiterOn(t, inMemory(t), headgate.Config{Observer: &r}, "100/hour", "1/hour burst 3")
		w := newWaiters(t, l)
		for id := range 5 {
			w.start(t.Context(), id, "k") // two of them wait
		}
		if err := l.Wait(t.Context(), "k", 4); !errors.Is(err, headgate.ErrExceedsCapacity) {
			t.Errorf("%v, want ErrExceedsCapacity", err)
		}
		if took := time.Since(w.begin); took != 0 {
			t.Errorf("it took %v to say so", took)
		}
		if d := r.last().Decision; d.RetryAfter != headgate.Never {
			t.Errorf("the Observer saw %+v", d)
		}
		w.expect([]int{0, 1, 2, 3, 4}, 0, 0, 0, time.Hour, 2*time.Hour)
		if err := limiterOn(t, inMemory(t), headgate.Config{}, "0/s").Wait(t.Context(), "k", 1); !errors.Is(err, headgate.ErrExceedsCapacity) {
			t.Errorf("count 0: %v, want ErrExceedsCapacity", err)
		}
	})
}

// The line of one key does not hold up another.
func TestWaitKeysApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiterOn(t, inMemory(t), headgate.Config{}, "1/hour")
		w := newWaiters(t, l)
		w.start(t.Context(), 0, "a")
		w.start(t.Context(), 1, "a")
		time.Sleep(30 * time.Minute)
		w.start(t.Context(), 2, "b")
		w.start(t.Context(), 3, "b")
		w.expect([]int{0, 2, 1, 3}, 0, 30*time.Minute, time.Hour, 90*time.Minute)
	})
}

// Those who do not wait are not held back by those who do, and those who wait try again.
func TestWaitBesideAllow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiterOn(t, inMemory(t), headgate.Config{}, "10/s burst 2")
		mustAllow(t, l, "k", 2)
		w := newWaiters(t, l)
		w.wg.Go(func() {
			if err := l.Wait(t.Context(), "k", 2); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(tenth + tenth/2)
		mustAllow(t, l, "k", 1)
		w.wg.Wait()
		if got := time.Since(w.begin); got != 3*tenth {
			t.Errorf("2 tokens after %v, want %v", got, 3*tenth)
		}
	})
}

// Each attempt is a decision that the Observer sees: a denial and a grant for one who waits once.
func TestWaitIsObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		l := limiterOn(t, inMemory(t), headgate.Config{Observer: &r}, "1/hour")
		mustAllow(t, l, "k", 1)
		if err := l.Wait(t.Context(), "k", 1); err != nil {
			t.Fatal(err)
		}
		if len(r.seen) != 3 || r.seen[1].Decision.Allowed || !r.seen[2].Decision.Allowed {
			t.Errorf("saw %+v", r.seen)
		}
	})
}

// Waiters that come, go and are cancelled at many instants: what was granted is what they say, and never more than the limit.
func TestWaitUnderChurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiterOn(t, slow{inMemory(t), 3 * time.Millisecond}, headgate.Config{}, "100/day sliding-log")
		var wg sync.WaitGroup
		var granted atomic.Int64
		for i := range 300 {
			wg.Go(func() {
				time.Sleep(time.Duration(i%17) * time.Millisecond)
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%101)*time.Millisecond)
				defer cancel()
				if l.Wait(ctx, "k", 1) == nil {
					granted.Add(1)
				}
			})
		}
		wg.Wait()
		if granted.Load() == 0 || granted.Load() > 100 {
			t.Errorf("%d granted", granted.Load())
		}
		left(t, l, "k", 100-granted.Load())
	})
}
