package headgate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
)

// inMemory returns a Memory that is closed with the test.
func inMemory(t testing.TB) *headgate.Memory {
	t.Helper()
	m, err := headgate.NewMemory(headgate.MemoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// limiterOn returns a Limiter on store, under limits in their text form.
func limiterOn(t testing.TB, store headgate.Store, cfg headgate.Config, limits ...string) *headgate.Limiter {
	t.Helper()
	list := make([]headgate.Limit, len(limits))
	for i, text := range limits {
		list[i] = parse(t, text)
	}
	l, err := headgate.New(store, list, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestNewRefuses(t *testing.T) {
	ok := headgate.PerSecond(1)
	many := make([]headgate.Limit, headgate.MaxCharges+1)
	for i := range many {
		many[i] = headgate.PerSecond(int64(i))
	}
	for _, tt := range []struct {
		name   string
		store  headgate.Store
		limits []headgate.Limit
		cfg    headgate.Config
		want   error
	}{
		{"no store", nil, []headgate.Limit{ok}, headgate.Config{}, headgate.ErrInvalidConfig},
		{"an unknown failure mode", inMemory(t), []headgate.Limit{ok}, headgate.Config{OnStoreError: headgate.FailLocal + 1}, headgate.ErrInvalidConfig},
		{"an invalid limit", inMemory(t), []headgate.Limit{ok, {}}, headgate.Config{}, headgate.ErrInvalidLimit},
		{"one limit twice", inMemory(t), []headgate.Limit{ok, ok}, headgate.Config{}, headgate.ErrInvalidConfig},
		{"one name twice", inMemory(t), []headgate.Limit{{Name: "a", Count: 1, Period: time.Second}, {Name: "a", Count: 2, Period: time.Second}}, headgate.Config{}, headgate.ErrInvalidConfig},
		{"too many limits", inMemory(t), many, headgate.Config{}, headgate.ErrInvalidConfig},
	} {
		if l, err := headgate.New(tt.store, tt.limits, tt.cfg); !errors.Is(err, tt.want) || l != nil {
			t.Errorf("%s: %v, %v, want %v", tt.name, l, err, tt.want)
		}
	}
	if _, err := headgate.New(inMemory(t), many[:headgate.MaxCharges], headgate.Config{}); err != nil {
		t.Errorf("as many limits as may be: %v", err)
	}
}

func TestLimitsAreCopied(t *testing.T) {
	limits := []headgate.Limit{headgate.PerSecond(1)}
	l, err := headgate.New(inMemory(t), limits, headgate.Config{})
	if err != nil {
		t.Fatal(err)
	}
	limits[0] = headgate.PerSecond(9)
	l.Limits()[0] = headgate.PerSecond(9)
	if got := l.Limits(); len(got) != 1 || got[0] != headgate.PerSecond(1) {
		t.Errorf("limits are %v", got)
	}
}

func TestAllow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiterOn(t, inMemory(t), headgate.Config{}, "2/s")
		for i, want := range []headgate.Decision{
			{Allowed: true, Remaining: 1, ResetAfter: 500 * time.Millisecond},
			{Allowed: true, Remaining: 0, ResetAfter: time.Second},
			{Allowed: false, Remaining: 0, RetryAfter: 500 * time.Millisecond, ResetAfter: time.Second},
		} {
			want.Limit, want.At = headgate.PerSecond(2), time.UnixMicro(time.Now().UnixMicro())
			if got, err := l.Allow(t.Context(), "k"); err != nil || !same(got, want) {
				t.Errorf("call %d: %+v, %v, want %+v", i+1, got, err, want)
			}
		}
		time.Sleep(500*time.Millisecond - time.Microsecond)
		mustDeny(t, l, "k", 1)
		time.Sleep(time.Microsecond)
		mustAllow(t, l, "k", 1)
		mustAllow(t, l, "another", 2)
	})
}

// same compares decisions without States.
func same(a, b headgate.Decision) bool { return fmt.Sprintf("%+v", a) == fmt.Sprintf("%+v", b) }

func mustAllow(t *testing.T, l *headgate.Limiter, key string, n int64) headgate.Decision {
	t.Helper()
	d, err := l.AllowN(t.Context(), key, n)
	if err != nil || !d.Allowed {
		t.Fatalf("%d tokens: %+v, %v, want them allowed", n, d, err)
	}
	return d
}

func mustDeny(t *testing.T, l *headgate.Limiter, key string, n int64) headgate.Decision {
	t.Helper()
	d, err := l.AllowN(t.Context(), key, n)
	if err != nil || d.Allowed {
		t.Fatalf("%d tokens: %+v, %v, want them denied", n, d, err)
	}
	return d
}

// left fails the test unless key has want tokens left under the binding limit.
func left(t *testing.T, l *headgate.Limiter, key string, want int64) {
	t.Helper()
	d, err := l.Peek(t.Context(), key)
	if err != nil || d.Remaining != want {
		t.Fatalf("%d left, %v, want %d", d.Remaining, err, want)
	}
}

func TestAllowNUnderSeveralLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiterOn(t, inMemory(t), headgate.Config{}, "10/s", "15/hour fixed-window")
		d := mustAllow(t, l, "k", 8)
		if d.Limit != parse(t, "10/s") || d.Remaining != 2 || len(d.States) != 2 || d.States[1].Remaining != 7 {
			t.Errorf("first: %+v", d)
		}
		d = mustDeny(t, l, "k", 3) // all or nothing: the hour is not charged either
		if d.Limit != parse(t, "10/s") || d.RetryAfter != 100*time.Millisecond || !d.States[1].Allowed || d.States[1].Remaining != 7 {
			t.Errorf("denied by the second: %+v", d)
		}
		time.Sleep(time.Second)
		d = mustDeny(t, l, "k", 8)
		if d.Limit != parse(t, "15/hour fixed-window") || d.RetryAfter != time.Hour-time.Second || d.States[0].Remaining != 10 {
			t.Errorf("denied by the hour: %+v", d)
		}
		mustAllow(t, l, "k", 7)
		d = mustDeny(t, l, "k", 11)
		if d.RetryAfter != headgate.Never || d.Limit != parse(t, "10/s") {
			t.Errorf("above the capacity: %+v", d)
		}
	})
}

func TestTakeAHierarchy(t *testing.T) {
	l := limiterOn(t, inMemory(t), headgate.Config{})
	ask := func(user string) headgate.Decision {
		d, err := l.Take(t.Context(),
			headgate.Charge{Key: "org", Cost: 1, Limit: headgate.PerHour(3)},
			headgate.Charge{Key: user, Cost: 1, Limit: headgate.PerHour(2)})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	got := []bool{ask("a").Allowed, ask("a").Allowed, ask("a").Allowed, ask("b").Allowed, ask("b").Allowed}
	if want := []bool{true, true, false, true, false}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("allowed %v, want %v", got, want)
	}
	if d := ask("b"); d.Limit != headgate.PerHour(3) || !d.States[1].Allowed || d.States[1].Remaining != 1 {
		t.Errorf("the organisation denies and the user is not charged: %+v", d)
	}
}

func TestPeekChangesNothing(t *testing.T) {
	l := limiterOn(t, inMemory(t), headgate.Config{}, "5/hour", "7/hour sliding-log")
	for range 20 {
		left(t, l, "k", 5)
	}
	mustAllow(t, l, "k", 5)
	d, err := l.Peek(t.Context(), "k")
	if err != nil || !d.Allowed || d.Remaining != 0 || d.RetryAfter != 0 {
		t.Errorf("a look at what is spent: %+v, %v", d, err)
	}
}

func TestRefundAndReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiterOn(t, inMemory(t), headgate.Config{}, "5/hour fixed-window", "6/hour aligned-window")
		taken := mustAllow(t, l, "k", 4)
		if err := l.Refund(t.Context(), "k", 1); err != nil {
			t.Fatal(err)
		}
		left(t, l, "k", 2)
		if err := l.Refund(t.Context(), "k", 100); err != nil {
			t.Fatal(err)
		}
		left(t, l, "k", 5)
		mustAllow(t, l, "k", 5)
		if err := l.Reset(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		left(t, l, "k", 5)
		time.Sleep(2 * time.Hour)
		mustAllow(t, l, "k", 4)
		if err := l.Refund(headgate.WithTakenAt(t.Context(), taken.At), "k", 4); err != nil {
			t.Fatal(err)
		}
		left(t, l, "k", 1) // the tokens were of an earlier window
	})
}

func TestInvalidRequests(t *testing.T) {
	const secret = "secret-key"
	long := strings.Repeat(secret, 200)
	for _, store := range []headgate.Store{inMemory(t), forwarding{inMemory(t)}} {
		l := limiterOn(t, store, headgate.Config{OnStoreError: headgate.FailOpen}, "5/s")
		two := limiterOn(t, store, headgate.Config{OnStoreError: headgate.FailOpen}, "5/s", "9/s")
		none := limiterOn(t, store, headgate.Config{OnStoreError: headgate.FailOpen})
		for name, call := range map[string]func(context.Context) error{
			"no key":                func(ctx context.Context) error { _, err := l.Allow(ctx, ""); return err },
			"a key too long":        func(ctx context.Context) error { _, err := l.Allow(ctx, long); return err },
			"a negative cost":       func(ctx context.Context) error { _, err := l.AllowN(ctx, secret, -1); return err },
			"two limits":            func(ctx context.Context) error { _, err := two.AllowN(ctx, long, 1); return err },
			"no limits":             func(ctx context.Context) error { _, err := none.Allow(ctx, secret); return err },
			"no limits, peek":       func(ctx context.Context) error { _, err := none.Peek(ctx, secret); return err },
			"no limits, refund":     func(ctx context.Context) error { return none.Refund(ctx, secret, 1) },
			"no limits, reset":      func(ctx context.Context) error { return none.Reset(ctx, secret) },
			"no limits, wait":       func(ctx context.Context) error { return none.Wait(ctx, secret, 1) },
			"a negative refund":     func(ctx context.Context) error { return l.Refund(ctx, secret, -1) },
			"a reset of nobody":     func(ctx context.Context) error { return l.Reset(ctx, "") },
			"a wait for no one":     func(ctx context.Context) error { return l.Wait(ctx, "", 1) },
			"a negative wait":       func(ctx context.Context) error { return l.Wait(ctx, secret, -1) },
			"a wait with long keys": func(ctx context.Context) error { return two.Wait(ctx, long, 1) },
		} {
			err := call(t.Context())
			if !errors.Is(err, headgate.ErrInvalidCharge) || errors.Is(err, headgate.ErrStore) || strings.Contains(err.Error(), secret) {
				t.Errorf("%T: %s: %v, want ErrInvalidCharge, and no key in it", store, name, err)
			}
		}
		if _, err := l.Take(t.Context(), headgate.Charge{Key: secret, Cost: 1}); !errors.Is(err, headgate.ErrInvalidLimit) {
			t.Errorf("%T: an invalid limit: %v", store, err)
		}
	}
}

// 1,000 parallel requests get exactly the capacity, under one limit and under two, in every algorithm.
func TestParallelTakesAreExact(t *testing.T) {
	for _, limits := range [][]string{
		{"100/day"}, {"100/day fixed-window"}, {"100/day aligned-window"}, {"100/day sliding-window"}, {"100/day sliding-log"},
		{"100/day", "150/day sliding-log"},
	} {
		l := limiterOn(t, inMemory(t), headgate.Config{}, limits...)
		var wg sync.WaitGroup
		var granted atomic.Int64
		for range 1000 {
			wg.Go(func() {
				if d, err := l.Allow(t.Context(), "k"); err == nil && d.Allowed {
					granted.Add(1)
				}
			})
		}
		wg.Wait()
		if granted.Load() != 100 {
			t.Errorf("%v: %d granted, want 100", limits, granted.Load())
		}
	}
}

// One limit costs no allocation once the key is known. Two cost what their decision is made of: the list of charges by counter (the
// bill: its items, where each charge's is, the limits, the order of the locks, the shards) and the States that the caller owns.
func TestAllocations(t *testing.T) {
	ctx := t.Context()
	for _, algorithm := range []string{"", " fixed-window", " aligned-window", " sliding-window", " sliding-log"} {
		l := limiterOn(t, inMemory(t), headgate.Config{}, "100/day"+algorithm)
		for _, n := range []int64{0, 1, 1000} { // looks, grants and then denials, denials
			if got := testing.AllocsPerRun(500, func() { l.AllowN(ctx, "k", n) }); got != 0 {
				t.Errorf("100/day%s: %v allocations for a cost of %d, want none", algorithm, got, n)
			}
		}
	}
	two := limiterOn(t, inMemory(t), headgate.Config{}, "10/s", "1000/day")
	if got := testing.AllocsPerRun(500, func() { two.Allow(ctx, "k") }); got > 7 {
		t.Errorf("two limits: %v allocations, want at most 7", got)
	}
}
