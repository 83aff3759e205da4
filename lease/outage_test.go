package lease_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/lease"
)

var errAway = errors.New("away")

func away(headgate.Charge) error { return errAway }

// drain spends what is held.
func (f *fixture) drain() {
	f.t.Helper()
	for f.Stats().Held > 0 {
		f.take(1)
	}
}

// together asks n times at once, for one token each, and returns how many were allowed and what the others failed with.
func (f *fixture) together(ctx context.Context, n int) (allowed int, errs []error) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range n {
		wg.Go(func() {
			d, err := f.Take(ctx, f.charge(1))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
			} else if d.Allowed {
				allowed++
			}
		})
	}
	wg.Wait()
	return allowed, errs
}

// Those who need a block wait for one and the same call.
func TestOneBlockForAll(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := open(t, window(1_000_000), lease.Config{})
		for f.Stats().Held < 100 {
			f.take(1)
			time.Sleep(ms)
		}
		f.drain()
		f.remote.calls()
		allowed, errs := f.together(t.Context(), 100)
		if n := f.remote.calls(); allowed != 100 || errs != nil || n != 1 {
			t.Errorf("%d allowed, errors %v, %d calls; want 100 with one call", allowed, errs, n)
		}
		f.balance()
	})
}

// A block that fails is an error to all who wait for it, one that was lost is stranded, and neither is asked for twice.
func TestBlockFails(t *testing.T) {
	tests := []struct {
		name     string
		fail     func(f *fixture)
		stranded bool
		matches  error
	}{
		{"refused", func(f *fixture) { f.remote.fault = away }, true, errAway},
		{"breaker", func(f *fixture) { f.remote.fault = func(headgate.Charge) error { return headgate.ErrBreakerOpen } }, false, headgate.ErrBreakerOpen},
		{"lost", func(f *fixture) { f.remote.lose = func(headgate.Charge) bool { return true } }, true, context.DeadlineExceeded},
		{"hangs", func(f *fixture) { f.remote.way = time.Hour }, true, context.DeadlineExceeded},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := open(t, window(1000), lease.Config{})
				f.warm(10 * ms)
				f.drain()
				before, start := f.Stats(), time.Now()
				f.remote.calls()
				tt.fail(f)
				allowed, errs := f.together(t.Context(), 10)
				if n := f.remote.calls(); allowed != 0 || len(errs) != 10 || n != 1 {
					t.Errorf("%d allowed, %d errors, %d calls; want 10 errors of one call", allowed, len(errs), n)
				}
				for _, err := range errs {
					if !errors.Is(err, headgate.ErrStore) || !errors.Is(err, tt.matches) {
						t.Errorf("error %v", err)
					}
				}
				if took := time.Since(start); took > headgate.DefaultTimeout {
					t.Errorf("it took %v", took)
				}
				s := f.balance()
				if got := s.Stranded > before.Stranded; got != tt.stranded || s.Held != 0 {
					t.Errorf("%+v after %+v, want stranded %v", s, before, tt.stranded)
				}
				f.remote.fault, f.remote.lose, f.remote.way = nil, nil, 0
				if d := f.take(1); !d.Allowed || d.Source != headgate.FromStore {
					t.Errorf("%+v once the store is back, want its decision", d)
				}
			})
		})
	}
}

// Whoever stops waiting leaves the block to the others.
func TestCancelLeavesTheBlock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := open(t, window(1000), lease.Config{})
		f.warm(10 * ms)
		f.drain()
		left := f.left()
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() { _, err := f.Take(ctx, f.charge(1)); gone <- err }()
		synctest.Wait()
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) || !errors.Is(err, headgate.ErrStore) {
			t.Errorf("error %v, want the end of the context", err)
		}
		time.Sleep(10 * ms)
		if s := f.balance(); s.Held == 0 || s.Held != left-f.left() {
			t.Errorf("%+v held, the store gave %d", s, left-f.left())
		}
	})
}

// While the store is away, tokens that are held are spent, until their time is over, whatever the breaker says.
func TestSpendsWhileTheStoreIsAway(t *testing.T) {
	bubble(t, func(t *testing.T) {
		far := &remote{Store: newMemory(t), way: ms}
		guard, err := headgate.NewGuard(far, headgate.GuardConfig{Breaker: headgate.BreakerConfig{Failures: 1}})
		if err != nil {
			t.Fatal(err)
		}
		store := newStore(t, guard, lease.Config{})
		if store.Guard() != guard {
			t.Error("the guard is not found")
		}
		limiter, err := headgate.New(store, []headgate.Limit{window(1000)}, headgate.Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		for store.Stats().Held < 50 {
			if _, err := limiter.Allow(t.Context(), "k"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(ms)
		}
		far.fault = away
		if _, err := limiter.Allow(t.Context(), "another"); !errors.Is(err, headgate.ErrStore) || guard.State() == headgate.BreakerClosed {
			t.Fatalf("error %v, breaker %v; want it open", err, guard.State())
		}
		held, spent := store.Stats().Held, 0
		for range 40 {
			if d, err := limiter.Allow(t.Context(), "k"); err == nil && d.Source == headgate.FromLease {
				spent++
			}
			time.Sleep(ms)
		}
		if spent != 40 {
			t.Errorf("%d of 40 decided by leases that hold %d", spent, held)
		}
		time.Sleep(lease.DefaultLifetime)
		if d, err := limiter.Allow(t.Context(), "k"); !errors.Is(err, headgate.ErrStore) || d.Source != headgate.FromClosed {
			t.Errorf("%+v, %v once the lease is over, want what the failure mode says", d, err)
		}
		if err := store.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute) // the probe ends
	})
}
