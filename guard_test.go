package headgate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
)

// A moody store answers from memory, or fails, or hangs until the context ends, as its mood says; it counts what reaches it.
type moody struct {
	*headgate.Memory
	mood  atomic.Int32
	calls atomic.Int64
	spent atomic.Int64 // tokens asked for
}

const (
	fine int32 = iota
	refused
	hung
	readOnly
)

var errRefused = errors.New("connection refused")

func newMoody(t *testing.T) *moody {
	t.Helper()
	memory, err := headgate.NewMemory(headgate.MemoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return &moody{Memory: memory}
}

func (m *moody) Take(ctx context.Context, first headgate.Charge, more ...headgate.Charge) (headgate.Decision, error) {
	m.calls.Add(1)
	m.spent.Add(first.Cost)
	switch m.mood.Load() {
	case refused:
		return headgate.Decision{}, errRefused
	case hung:
		<-ctx.Done()
		return headgate.Decision{}, ctx.Err()
	case readOnly:
		if first.Cost > 0 {
			return headgate.Decision{}, errRefused
		}
	}
	return m.Memory.Take(ctx, first, more...)
}

func newGuard(t *testing.T, store headgate.Store, cfg headgate.GuardConfig) *headgate.Guard {
	t.Helper()
	guard, err := headgate.NewGuard(store, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

var guarded = headgate.Charge{Key: "acme", Cost: 1, Limit: headgate.PerDay(1000)}

func TestGuardOpensAfterFailuresInRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMoody(t)
		var changes []string
		guard := newGuard(t, store, headgate.GuardConfig{OnChange: func(from, to headgate.BreakerState) {
			changes = append(changes, fmt.Sprint(from, ">", to))
		}})
		store.mood.Store(refused)
		for i := range 4 {
			if _, err := guard.Take(t.Context(), guarded); !errors.Is(err, errRefused) || !errors.Is(err, headgate.ErrStore) {
				t.Fatalf("failure %d: %v, want the store's own", i+1, err)
			}
		}
		store.mood.Store(fine)
		if _, err := guard.Take(t.Context(), guarded); err != nil {
			t.Fatal(err)
		}
		store.mood.Store(refused)
		for range 5 { // the success between began the count anew
			if guard.State() != headgate.BreakerClosed {
				t.Fatalf("open after %d calls", store.calls.Load())
			}
			_, _ = guard.Take(t.Context(), guarded)
		}
		reached := store.calls.Load()
		_, err := guard.Take(t.Context(), guarded)
		if !errors.Is(err, headgate.ErrBreakerOpen) || !errors.Is(err, headgate.ErrStore) || !strings.Contains(err.Error(), errRefused.Error()) {
			t.Errorf("open breaker says %v, want ErrBreakerOpen and why it opened", err)
		}
		if err := guard.Refund(t.Context(), guarded); !errors.Is(err, headgate.ErrBreakerOpen) {
			t.Errorf("Refund: %v", err)
		}
		if err := guard.Reset(t.Context(), guarded); !errors.Is(err, headgate.ErrBreakerOpen) {
			t.Errorf("Reset: %v", err)
		}
		if store.calls.Load() != reached {
			t.Error("a call reached the store past an open breaker")
		}
		if len(changes) != 1 || changes[0] != "closed>open" {
			t.Errorf("changes %v", changes)
		}
	})
}

func TestGuardProbesAndRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMoody(t)
		guard := newGuard(t, store, headgate.GuardConfig{Breaker: headgate.BreakerConfig{Failures: 1}})
		store.mood.Store(refused)
		_, _ = guard.Take(t.Context(), guarded)
		spent := store.spent.Load()
		var waits []time.Duration
		last := time.Now()
		for range 6 { // each probe that fails doubles the time to the next, up to a second
			reached := store.calls.Load()
			for store.calls.Load() == reached {
				time.Sleep(time.Millisecond)
				if _, err := guard.Take(t.Context(), guarded); !errors.Is(err, headgate.ErrBreakerOpen) {
					t.Fatalf("%v, want ErrBreakerOpen: nobody waits for a probe", err)
				}
				synctest.Wait()
			}
			waits = append(waits, time.Since(last).Round(10*time.Millisecond))
			last = time.Now()
		}
		if want := fmt.Sprint([]time.Duration{100e6, 200e6, 400e6, 800e6, 1e9, 1e9}); fmt.Sprint(waits) != want {
			t.Errorf("probes after %v, want %v", waits, want)
		}
		if n := store.spent.Load() - spent; n != 6 {
			t.Errorf("6 probes asked for %d tokens, want one each: a store that cannot be written to decides nothing", n)
		}
		store.mood.Store(fine)
		time.Sleep(headgate.DefaultBreakerMaxWait)
		if _, err := guard.Take(t.Context(), guarded); !errors.Is(err, headgate.ErrBreakerOpen) {
			t.Fatalf("the call that sends the probe out: %v", err)
		}
		synctest.Wait()
		if d, err := guard.Take(t.Context(), guarded); err != nil || d.Remaining != 999 {
			t.Errorf("after recovery: %+v, %v; want the store's first charge", d, err)
		}
	})
}

// TestGuardOfReadOnlyStore has a store answer looks alone, as a replica and a full server do: the breaker stays open.
func TestGuardOfReadOnlyStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMoody(t)
		opened, closed := 0, 0
		guard := newGuard(t, store, headgate.GuardConfig{OnChange: func(_, to headgate.BreakerState) {
			switch to {
			case headgate.BreakerClosed:
				closed++
			case headgate.BreakerOpen:
				opened++
			}
		}})
		store.mood.Store(readOnly)
		for range 1000 {
			_, _ = guard.Take(t.Context(), guarded)
			time.Sleep(10 * time.Millisecond)
		}
		synctest.Wait()
		if closed != 0 || opened < 10 || guard.State() == headgate.BreakerClosed {
			t.Errorf("closed %d times, opened %d, now %v; want it never closed again", closed, opened, guard.State())
		}
	})
}

func TestGuardOpensOnRatio(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMoody(t)
		guard := newGuard(t, store, headgate.GuardConfig{Breaker: headgate.BreakerConfig{Failures: 1000, Ratio: 0.5}})
		for i := 0; guard.State() == headgate.BreakerClosed; i++ { // every second call fails
			store.mood.Store(int32(1 - i%2))
			_, _ = guard.Take(t.Context(), guarded)
			if i > 100 {
				t.Fatal("half of the calls fail, and the breaker stays closed")
			}
		}
		if n := store.calls.Load(); n != 39 {
			t.Errorf("opened after %d calls, want the 39th, the twentieth to fail", n)
		}
	})
}

func TestGuardRatioForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMoody(t)
		guard := newGuard(t, store, headgate.GuardConfig{Breaker: headgate.BreakerConfig{Failures: 1000}})
		store.mood.Store(refused)
		for range 100 { // one failure a second never makes twenty within the window
			_, _ = guard.Take(t.Context(), guarded)
			time.Sleep(time.Second)
		}
		if guard.State() != headgate.BreakerClosed {
			t.Error("opened by failures that are long past")
		}
	})
}

func TestGuardHangingStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMoody(t)
		store.mood.Store(hung)
		guard := newGuard(t, store, headgate.GuardConfig{})
		var wg sync.WaitGroup
		for range 1000 { // they come while nothing is known yet, and none waits past the deadline
			wg.Go(func() {
				start := time.Now()
				if _, err := guard.Take(t.Context(), guarded); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v, want the deadline", err)
				}
				if waited := time.Since(start); waited != headgate.DefaultTimeout/5*4 {
					t.Errorf("waited %v", waited)
				}
			})
		}
		wg.Wait()
		for range 10_000 { // and those who come later do not wait at all, nor reach the store
			start := time.Now()
			if _, err := guard.Take(t.Context(), guarded); !errors.Is(err, headgate.ErrBreakerOpen) || time.Since(start) != 0 {
				t.Fatalf("%v after %v", err, time.Since(start))
			}
		}
		if n := store.calls.Load(); n != 1000 {
			t.Errorf("%d calls reached the store, want the first 1000", n)
		}
	})
}

func TestGuardDoesNotCountCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMoody(t)
		store.mood.Store(hung)
		guard := newGuard(t, store, headgate.GuardConfig{Breaker: headgate.BreakerConfig{Failures: 1}})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		if _, err := guard.Take(ctx, guarded); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want the caller's cancellation", err)
		}
		short, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		_, _ = guard.Take(short, guarded)
		if _, err := guard.Take(t.Context(), headgate.Charge{}); !errors.Is(err, headgate.ErrInvalidCharge) {
			t.Errorf("%v, want ErrInvalidCharge", err)
		}
		if guard.State() != headgate.BreakerClosed {
			t.Error("a caller who went away, had no time or asked nonsense opened the breaker")
		}
		long, cancel := context.WithTimeout(t.Context(), 40*time.Millisecond)
		defer cancel()
		_, _ = guard.Take(long, guarded)
		if guard.State() != headgate.BreakerOpen {
			t.Error("a store that hangs goes unnoticed where callers bring deadlines a little shorter than the guard's")
		}
	})
}

func TestGuardConfig(t *testing.T) {
	store := newMoody(t)
	for name, cfg := range map[string]headgate.BreakerConfig{
		"ratio": {Ratio: -0.1}, "cooldown": {Cooldown: -1}, "longest cooldown": {MaxCooldown: -1},
	} {
		if _, err := headgate.NewGuard(store, headgate.GuardConfig{Breaker: cfg}); !errors.Is(err, headgate.ErrInvalidConfig) {
			t.Errorf("negative %s: %v, want ErrInvalidConfig", name, err)
		}
		if _, err := headgate.New(store, nil, headgate.Config{Breaker: cfg}); !errors.Is(err, headgate.ErrInvalidConfig) {
			t.Errorf("negative %s in New: %v, want ErrInvalidConfig", name, err)
		}
	}
	if _, err := headgate.NewGuard(nil, headgate.GuardConfig{}); !errors.Is(err, headgate.ErrInvalidConfig) {
		t.Errorf("no store: %v, want ErrInvalidConfig", err)
	}
	never := newGuard(t, store, headgate.GuardConfig{Breaker: headgate.BreakerConfig{Failures: -1}})
	store.mood.Store(refused)
	for range 100 {
		_, _ = never.Take(t.Context(), guarded)
	}
	if never.State() != headgate.BreakerClosed {
		t.Error("a breaker that never opens opened")
	}
}

type breakerLog struct {
	headgate.ObserverFunc
	changes []string
}

func (b *breakerLog) ObserveBreaker(from, to headgate.BreakerState) {
	b.changes = append(b.changes, fmt.Sprint(from, ">", to))
}

// TestLimitersShareGuard: what one limiter learned of the store, the other knows; each answers in its own way.
func TestLimitersShareGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMoody(t)
		guard := newGuard(t, store, headgate.GuardConfig{})
		var log bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&log, nil))
		limits := []headgate.Limit{headgate.PerDay(10)}
		closed, err := headgate.New(guard, limits, headgate.Config{Logger: logger})
		if err != nil {
			t.Fatal(err)
		}
		local, err := headgate.New(guard, limits, headgate.Config{OnStoreError: headgate.FailLocal, Replicas: func() int { return 2 }, Logger: logger})
		if err != nil {
			t.Fatal(err)
		}
		store.mood.Store(hung)
		for range headgate.DefaultBreakerFailures {
			if d, err := closed.Allow(t.Context(), "k"); err == nil || d.Source != headgate.FromClosed {
				t.Fatalf("%+v, %v", d, err)
			}
		}
		start, allowed := time.Now(), 0
		for range 20 {
			d, err := local.Allow(t.Context(), "k")
			if err != nil || d.Source != headgate.FromLocal {
				t.Fatalf("%+v, %v", d, err)
			}
			if d.Allowed {
				allowed++
			}
		}
		if allowed != 5 || time.Since(start) != 0 {
			t.Errorf("allowed %d of 10 over 2 replicas in %v, want 5 at once", allowed, time.Since(start))
		}
	})
}

func TestLimiterObservesBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMoody(t)
		seen := &breakerLog{ObserverFunc: func(context.Context, headgate.Observation) {}}
		limiter, err := headgate.New(store, []headgate.Limit{headgate.PerDay(10)}, headgate.Config{
			OnStoreError: headgate.FailOpen, Observer: seen, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		store.mood.Store(refused)
		for range 10 {
			_, _ = limiter.Allow(t.Context(), "k")
		}
		store.mood.Store(fine)
		time.Sleep(headgate.DefaultBreakerCooldown)
		_, _ = limiter.Allow(t.Context(), "k")
		synctest.Wait()
		if d, err := limiter.Allow(t.Context(), "k"); err != nil || d.Source != headgate.FromStore {
			t.Errorf("%+v, %v; want the store's decision again", d, err)
		}
		if got := fmt.Sprint(seen.changes); got != "[closed>open open>half-open half-open>closed]" {
			t.Errorf("changes %v", got)
		}
	})
}
