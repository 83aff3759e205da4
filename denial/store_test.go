package denial_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/denial"
	"github.com/headgate/headgate/storetest"
)

func TestConforms(t *testing.T) {
	storetest.Run(t, func(t *testing.T) headgate.Store { return around(t, memory(t), denial.Config{}) })
}

// TestConformsLong: the suite's refunds and resets all go through the cache, so no bound on staleness is needed.
func TestConformsLong(t *testing.T) {
	storetest.Run(t, func(t *testing.T) headgate.Store {
		return around(t, memory(t), denial.Config{MaxStaleness: denial.LongestStaleness})
	})
}

func TestConfig(t *testing.T) {
	m := memory(t)
	for _, cfg := range []denial.Config{
		{}, {MaxStaleness: 1}, {MaxStaleness: denial.LongestStaleness}, {MaxKeys: 1}, {MaxKeys: denial.MostKeys},
	} {
		if _, err := denial.New(m, cfg); err != nil {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	for _, cfg := range []denial.Config{
		{MaxStaleness: -1}, {MaxStaleness: denial.LongestStaleness + 1}, {MaxKeys: -1}, {MaxKeys: denial.MostKeys + 1},
	} {
		if _, err := denial.New(m, cfg); !errors.Is(err, headgate.ErrInvalidConfig) {
			t.Errorf("%+v: %v, want ErrInvalidConfig", cfg, err)
		}
	}
	if _, err := denial.New(nil, denial.Config{}); !errors.Is(err, headgate.ErrInvalidConfig) {
		t.Errorf("no store: %v, want ErrInvalidConfig", err)
	}
}

// TestWhatIsAnswered: after all is taken and one token was denied, each cost is answered by the cache or asked of the store; and that denial is
// remembered after a request of each cost, or not.
func TestWhatIsAnswered(t *testing.T) {
	costs := []int64{0, 1, 2, 5, 6, math.MaxInt64} // of 5
	type table struct{ answered, remembered [6]bool }
	tables := map[bool]table{
		true:  {answered: [6]bool{1: true, 2: true, 3: true, 4: true, 5: true}, remembered: [6]bool{1: true, 2: true, 3: true}},
		false: {answered: [6]bool{1: true, 4: true, 5: true}, remembered: [6]bool{1: true}},
	}
	for _, a := range algorithms {
		want := tables[a == headgate.FixedWindow || a == headgate.AlignedWindow]
		limit := headgate.Limit{Algorithm: a, Count: 5, Period: headgate.MaxPeriod}
		for i, cost := range costs {
			s := around(t, memory(t), denial.Config{})
			take(t, s, charge("k", 5, limit))
			asked(t, s, charge("k", cost, limit))
			if d := take(t, s, charge("k", 1, limit)); (d.Source == headgate.FromCache) != want.remembered[i] {
				t.Errorf("%v: 1 after %d: %+v, want it from the cache: %v", a, cost, d, want.remembered[i])
			}
			d := take(t, s, charge("k", cost, limit))
			if (d.Source == headgate.FromCache) != want.answered[i] || d.Allowed != (cost == 0) || d.Remaining != 0 {
				t.Errorf("%v: %d: %+v, want it from the cache: %v", a, cost, d, want.answered[i])
			}
			if never := d.RetryAfter == headgate.Never; never != (cost > 5) {
				t.Errorf("%v: %d has the wait %v", a, cost, d.RetryAfter)
			}
		}
	}
}

// TestTokensLeft: a denial with tokens left says nothing of those who want fewer.
func TestTokensLeft(t *testing.T) {
	for _, a := range algorithms {
		s := around(t, memory(t), denial.Config{})
		limit := headgate.Limit{Algorithm: a, Count: 5, Period: headgate.MaxPeriod}
		take(t, s, charge("k", 3, limit))
		for range 2 {
			if d := asked(t, s, charge("k", 3, limit)); d.Allowed || d.Remaining != 2 {
				t.Errorf("%v: %+v, want 2 left", a, d)
			}
			asked(t, s, charge("k", 6, limit))
		}
		if d := asked(t, s, charge("k", 2, limit)); !d.Allowed {
			t.Errorf("%v: %+v, want what was left", a, d)
		}
	}
}

func TestNothingEverPasses(t *testing.T) {
	for _, a := range algorithms {
		s := around(t, memory(t), denial.Config{})
		limit := headgate.Limit{Algorithm: a, Period: time.Second}
		asked(t, s, charge("k", 7, limit))
		if d := cached(t, s, charge("k", 3, limit)); d.RetryAfter != headgate.Never || d.ResetAfter != 0 {
			t.Errorf("%v: %+v, want Never and nothing to reset", a, d)
		}
	}
}

// TestOthers: keys, limits and algorithms beside the one that is denied are asked about, whatever they have in common with it.
func TestOthers(t *testing.T) {
	s := around(t, memory(t), denial.Config{MaxKeys: 1})
	limit := headgate.Limit{Name: "n", Count: 1, Period: time.Hour}
	exhaust(t, s, "k", limit)
	cached(t, s, charge("k", 1, limit))
	named, text, fixed := limit, limit, limit
	named.Name, text.Name, fixed.Algorithm = "m", "", headgate.FixedWindow
	for _, c := range []headgate.Charge{charge("kk", 1, limit), charge("k", 1, named), charge("k", 1, text), charge("k", 1, fixed)} {
		if d := asked(t, s, c); !d.Allowed {
			t.Errorf("%+v: %+v", c, d)
		}
	}
	cached(t, s, charge("k", 1, limit))
	more := text
	more.Count = 2 // without a name, another counter
	exhaust(t, s, "k", text)
	if d := asked(t, s, charge("k", 1, more)); !d.Allowed {
		t.Errorf("%+v of another counter", d)
	}
	cached(t, s, charge("k", 1, text))
	if d, err := s.Take(t.Context(), charge("k", -1, limit)); !errors.Is(err, headgate.ErrInvalidCharge) {
		t.Errorf("a negative cost: %+v, %v", d, err)
	}
}

// TestSameCounter: two counters whose hashes meet are two all the same.
func TestSameCounter(t *testing.T) {
	one := charge("k", 1, headgate.Limit{Name: "n", Count: 1, Period: time.Hour})
	numbers, key, name, algorithm, text := one, one, one, one, one
	numbers.Cost, numbers.Limit.Count, numbers.Limit.Period = 2, 9, time.Minute
	key.Key, name.Limit.Name, algorithm.Limit.Algorithm, text.Limit.Name = "kk", "nn", headgate.FixedWindow, ""
	other := text
	other.Limit.Count = 2
	for _, tt := range []struct {
		a, b headgate.Charge
		want bool
	}{
		{one, one, true}, {one, numbers, true}, {text, text, true},
		{one, key, false}, {one, name, false}, {one, algorithm, false}, {one, text, false}, {text, other, false},
	} {
		if denial.SameCounter(tt.a, tt.b) != tt.want || denial.SameCounter(tt.b, tt.a) != tt.want {
			t.Errorf("%+v and %+v: want one counter: %v", tt.a, tt.b, tt.want)
		}
	}
}

// TestNotOfAStore: an error is no denial, and neither is what somebody else decided.
func TestNotOfAStore(t *testing.T) {
	limit := headgate.PerHour(1)
	c := charge("k", 1, limit)
	for _, tt := range []struct {
		name     string
		decision headgate.Decision
		err      error
	}{
		{"an error", headgate.Decision{}, &headgate.StoreError{Op: "take", Err: context.DeadlineExceeded}},
		{"a local decision", headgate.Decision{Source: headgate.FromLocal}, nil},
		{"nobody's decision", headgate.Decision{Source: headgate.FromClosed}, nil},
		{"another cache's", headgate.Decision{Source: headgate.FromCache}, nil},
	} {
		tt.decision.Limit, tt.decision.RetryAfter, tt.decision.ResetAfter = limit, time.Hour, time.Hour
		calls := 0
		s := around(t, &takeFunc{take: func(context.Context, headgate.Charge, ...headgate.Charge) (headgate.Decision, error) {
			calls++
			return tt.decision, tt.err
		}}, denial.Config{})
		for range 3 {
			if _, err := s.Take(t.Context(), c); err != tt.err {
				t.Errorf("%s: %v", tt.name, err)
			}
		}
		if calls != 3 || s.Saved() != 0 {
			t.Errorf("%s: %d calls and %d saved, want all asked", tt.name, calls, s.Saved())
		}
	}
}

// TestOutage: while the store is away a denial that holds is still answered, and does not pass for a sign of life of the store.
func TestOutage(t *testing.T) {
	m := memory(t)
	away := errors.New("away")
	var down atomic.Bool
	guard, err := headgate.NewGuard(&takeFunc{Store: m, take: func(ctx context.Context, first headgate.Charge, more ...headgate.Charge) (headgate.Decision, error) {
		if down.Load() {
			return headgate.Decision{}, away
		}
		return m.Take(ctx, first, more...)
	}}, headgate.GuardConfig{})
	if err != nil {
		t.Fatal(err)
	}
	s := around(t, guard, denial.Config{MaxStaleness: time.Hour})
	if s.Guard() != guard || around(t, m, denial.Config{}).Guard() != nil {
		t.Error("Guard is not that of the store")
	}
	limiter, err := headgate.New(s, []headgate.Limit{headgate.PerHour(1)}, headgate.Config{})
	if err != nil {
		t.Fatal(err)
	}
	allow := func(key string) (headgate.Decision, error) { return limiter.Allow(t.Context(), key) }
	for range 2 {
		if _, err := allow("k"); err != nil {
			t.Fatal(err)
		}
	}
	down.Store(true)
	for guard.State() == headgate.BreakerClosed {
		if d, err := allow("k"); err != nil || d.Source != headgate.FromCache {
			t.Fatalf("%+v, %v, want a denial from the cache", d, err)
		}
		if d, err := allow("other"); !errors.Is(err, away) || d.Source != headgate.FromClosed {
			t.Fatalf("%+v, %v of another key", d, err)
		}
	}
	if d, err := allow("k"); err != nil || d.Source != headgate.FromCache {
		t.Errorf("%+v, %v behind an open breaker", d, err)
	}
}

// TestBounded: the table keeps as many denials as it was made for. Those that end last stay.
func TestBounded(t *testing.T) {
	var now time.Duration
	s := around(t, memory(t), denial.Config{MaxStaleness: time.Hour, MaxKeys: 4}) // one stripe
	denial.SetClock(s, func() time.Duration { return now })
	limit := headgate.PerDay(1)
	for i := range 6 {
		now += time.Second
		exhaust(t, s, fmt.Sprint(i), limit)
	}
	if s.Evicted() != 2 {
		t.Errorf("%d evicted, want 2", s.Evicted())
	}
	for i := range 4 {
		cached(t, s, charge(fmt.Sprint(5-i), 1, limit))
	}
	now += time.Hour // they are over: to take their places evicts nothing
	for i := range 4 {
		exhaust(t, s, fmt.Sprint("later", i), limit)
	}
	if s.Evicted() != 2 || s.Saved() != 4 {
		t.Errorf("%d evicted and %d saved, want 2 and 4", s.Evicted(), s.Saved())
	}
}

// TestHammered: callers who take and give back from all sides find, when all is given back, all of it; and whoever has just given back is not
// denied what is there.
func TestHammered(t *testing.T) {
	s := around(t, memory(t), denial.Config{MaxStaleness: time.Hour, MaxKeys: 4})
	c := charge("k", 1, headgate.Limit{Count: 3, Period: headgate.MaxPeriod})
	var held atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5_000 {
				d, err := s.Take(t.Context(), c)
				if err != nil {
					t.Error(err)
				}
				if !d.Allowed {
					continue
				}
				if n := held.Add(1); n > 3 {
					t.Errorf("%d hold one of 3", n)
				}
				held.Add(-1)
				if err := s.Refund(t.Context(), c); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for range 3 {
		if d := asked(t, s, c); !d.Allowed {
			t.Fatalf("%+v, want all three there", d)
		}
	}
}
