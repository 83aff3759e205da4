package denial_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/denial"
	"github.com/headgate/headgate/internal/oracle"
)

// TestNeverDeniesTooLong asks through a slow network a store whose clock is elsewhere and runs at another rate: at each instant at which the
// cache denies, the store denies too, and the answer's instant and waits are off by no more than the longest call took.
func TestNeverDeniesTooLong(t *testing.T) {
	const slowest = 40 * time.Millisecond // of a call in all
	for _, a := range algorithms {
		for _, ahead := range []time.Duration{-400 * 24 * time.Hour, 0, 3*time.Hour + 777*time.Microsecond} {
			for _, ppm := range []int64{-500, 0, 500} {
				t.Run(fmt.Sprintf("%v/ahead=%v/ppm=%d", a, ahead, ppm), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						random, start := rand.New(rand.NewPCG(uint64(ppm), uint64(a))), time.Now()
						store := &clockedStore{model: oracle.New(), now: func() time.Time {
							passed := time.Since(start)
							return start.Add(ahead + passed + passed*time.Duration(ppm)/1_000_000).Truncate(time.Microsecond)
						}, delay: func() { time.Sleep(time.Duration(random.Int64N(int64(slowest / 2)))) }}
						s := around(t, store, denial.Config{MaxStaleness: time.Minute})
						limit := headgate.Limit{Algorithm: a, Count: 3, Period: 2 * time.Second}
						for range 4_000 {
							compare(t, s, store, charge("k", 1, limit), slowest)
							time.Sleep(time.Duration(random.Int64N(int64(10 * time.Millisecond))))
						}
						if n := s.Saved(); n < 1_000 {
							t.Errorf("%d of 4000 saved: nothing was tried", n)
						}
					})
				})
			}
		}
	}
}

// compare asks s, and if it answers by itself the model, at the same instant.
func compare(t *testing.T, s *denial.Store, store *clockedStore, c headgate.Charge, slowest time.Duration) {
	t.Helper()
	got := take(t, s, c)
	if got.Source != headgate.FromCache {
		return
	}
	const drift = 2 * time.Millisecond // of two seconds, at 500 ppm, rounded up
	want := store.model.Take(store.now(), headgate.Decision{}, c)
	if want.Allowed || got.Remaining != want.Remaining || got.Limit != want.Limit {
		t.Fatalf("denied by the cache with %+v, and the store says %+v", got, want)
	}
	if got.At.Nanosecond()%1000 != 0 || got.RetryAfter%time.Microsecond != 0 || got.ResetAfter%time.Microsecond != 0 {
		t.Fatalf("%+v, want whole microseconds", got)
	}
	near := func(got, want time.Duration) bool { return got <= want+drift && got >= want-slowest-drift }
	if !near(got.RetryAfter, want.RetryAfter) || !near(got.ResetAfter, want.ResetAfter) || !near(want.At.Sub(got.At), 0) {
		t.Fatalf("the cache says %+v, and the store %+v", got, want)
	}
}

// TestStaleness: what is done elsewhere is seen after MaxStaleness, and not before, since the key is denied for longer.
func TestStaleness(t *testing.T) {
	const bound = 70 * time.Millisecond
	elsewhere := map[string]func(t *testing.T, m *headgate.Memory, c headgate.Charge) error{
		"refund": func(t *testing.T, m *headgate.Memory, c headgate.Charge) error { return m.Refund(t.Context(), c) },
		"reset":  func(t *testing.T, m *headgate.Memory, c headgate.Charge) error { return m.Reset(t.Context(), c) },
	}
	for what, do := range elsewhere {
		for _, a := range algorithms {
			t.Run(fmt.Sprintf("%s/%v", what, a), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := memory(t)
					s := around(t, m, denial.Config{MaxStaleness: bound})
					c := charge("k", 1, headgate.Limit{Name: "n", Algorithm: a, Count: 5, Period: time.Hour})
					exhaust(t, s, c.Key, c.Limit)
					time.Sleep(bound - time.Nanosecond)
					cached(t, s, c)
					if err := do(t, m, c); err != nil {
						t.Fatal(err)
					}
					cached(t, s, c)
					time.Sleep(time.Nanosecond)
					if d := asked(t, s, c); !d.Allowed {
						t.Errorf("%+v, want what was given back", d)
					}
				})
			})
		}
	}
	t.Run("raise", func(t *testing.T) { // elsewhere the new numbers are in force; here they come into force, at once
		c := charge("k", 1, headgate.Limit{Name: "n", Count: 5, Period: time.Hour})
		s := around(t, memory(t), denial.Config{})
		exhaust(t, s, c.Key, c.Limit)
		cached(t, s, c)
		c.Limit.Count = 50
		if d := asked(t, s, c); !d.Allowed {
			t.Errorf("%+v, want it allowed under more", d)
		}
	})
}

// TestAsksAgain: a key that stays denied for long costs one call in MaxStaleness; and once the wait is nearly over the store is asked, which alone
// knows when it is.
func TestAsksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const wait = 10 * time.Second
		s := around(t, memory(t), denial.Config{MaxStaleness: time.Second})
		c := charge("k", 1, headgate.Limit{Algorithm: headgate.FixedWindow, Count: 1, Period: wait})
		take(t, s, c)
		fromStore := 0
		for range wait / time.Millisecond {
			switch d := take(t, s, c); {
			case d.Allowed:
				t.Fatalf("%+v before its window", d)
			case d.Source == headgate.FromStore:
				fromStore++
			}
			time.Sleep(time.Millisecond)
		}
		if fromStore != 11 { // one a second, of which the last holds for 998 ms
			t.Errorf("%d calls in ten seconds, want one a second and one at the end", fromStore)
		}
		if d := asked(t, s, c); !d.Allowed {
			t.Errorf("%+v after its window", d)
		}
	})
}
