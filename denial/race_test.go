package denial_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/denial"
)

// A slowStore decides at once and lets the answer of the takes that it is told to hold travel for as long as the test says.
type slowStore struct {
	headgate.Store
	hold    chan struct{} // a take that receives from it tells held, and waits for release
	held    chan struct{}
	release chan struct{}
}

func newSlowStore(s headgate.Store) *slowStore {
	return &slowStore{Store: s, hold: make(chan struct{}, 1), held: make(chan struct{}), release: make(chan struct{})}
}

func (s *slowStore) Take(ctx context.Context, first headgate.Charge, more ...headgate.Charge) (headgate.Decision, error) {
	d, err := s.Store.Take(ctx, first, more...)
	select {
	case <-s.hold:
		s.held <- struct{}{}
		<-s.release
	default:
	}
	return d, err
}

// underWay has c decided by the store, runs do while the answer is on its way, and returns it.
func underWay(t *testing.T, s *denial.Store, slow *slowStore, c headgate.Charge, do func()) headgate.Decision {
	t.Helper()
	var d headgate.Decision
	var err error
	var wg sync.WaitGroup
	slow.hold <- struct{}{}
	wg.Go(func() { d, err = s.Take(t.Context(), c) })
	<-slow.held
	do()
	slow.release <- struct{}{}
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDenialUnderWay: a denial that was decided before a change and arrives after it is not remembered.
func TestDenialUnderWay(t *testing.T) {
	limit := headgate.Limit{Name: "n", Count: 10, Period: time.Hour}
	c := charge("k", 1, limit)
	other := c
	other.Limit.Count, other.Limit.Period = 20, time.Minute
	beside := charge("k", 1, headgate.Limit{Name: "beside", Count: 1, Period: time.Hour})
	tests := []struct {
		name   string
		change func(t *testing.T, s *denial.Store) error
		asks   bool
	}{
		{"nothing", func(*testing.T, *denial.Store) error { return nil }, false},
		{"a look", func(t *testing.T, s *denial.Store) error {
			_, err := s.Take(t.Context(), charge("k", 0, limit))
			return err
		}, false},
		{"a refund", func(t *testing.T, s *denial.Store) error { return s.Refund(t.Context(), c) }, true},
		{"a refund of several", func(t *testing.T, s *denial.Store) error { return s.Refund(t.Context(), beside, c) }, true},
		{"a reset", func(t *testing.T, s *denial.Store) error { return s.Reset(t.Context(), c) }, true},
		{"a reset of several", func(t *testing.T, s *denial.Store) error { return s.Reset(t.Context(), beside, c) }, true},
		{"a take under other numbers", func(t *testing.T, s *denial.Store) error { _, err := s.Take(t.Context(), other); return err }, true},
		{"one of several", func(t *testing.T, s *denial.Store) error { _, err := s.Take(t.Context(), other, beside); return err }, true},
		{"an invalid take", func(t *testing.T, s *denial.Store) error {
			if _, err := s.Take(t.Context(), charge("k", -1, limit)); !errors.Is(err, headgate.ErrInvalidCharge) {
				t.Errorf("a negative cost: %v", err)
			}
			return nil
		}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			slow := newSlowStore(memory(t))
			s := around(t, slow, denial.Config{MaxStaleness: time.Hour, MaxKeys: 4})
			if d := take(t, s, charge("k", 10, limit)); !d.Allowed {
				t.Fatalf("%+v of a fresh key", d)
			}
			d := underWay(t, s, slow, c, func() {
				if err := tt.change(t, s); err != nil {
					t.Error(err)
				}
			})
			if d.Allowed || d.Source != headgate.FromStore {
				t.Fatalf("%+v, want the store's denial", d)
			}
			if d = take(t, s, c); (d.Source == headgate.FromStore) != tt.asks {
				t.Errorf("then %+v, want the store asked: %v", d, tt.asks)
			}
		})
	}
}

// TestContradicted: what the store says of a counter counts more than what is remembered of it, however it came about.
func TestContradicted(t *testing.T) {
	limit := headgate.Limit{Name: "n", Count: 10, Period: time.Hour}
	cut := headgate.Limit{Name: "n", Count: 3, Period: time.Hour} // of which nothing is left
	for _, tt := range []struct {
		name    string
		charges []headgate.Charge
		asks    bool
	}{
		{"a look", []headgate.Charge{charge("k", 0, limit)}, true},
		{"a denial with tokens left", []headgate.Charge{charge("k", 9, limit)}, true},
		{"a grant", []headgate.Charge{charge("k", 5, limit)}, true},
		{"a look of several", []headgate.Charge{charge("k", 0, limit), charge("x", 1, limit)}, true},
		{"a denial of several", []headgate.Charge{charge("x", 11, limit), charge("k", 9, limit)}, true},
		{"a grant of several", []headgate.Charge{charge("x", 1, limit), charge("k", 5, limit)}, true},
		{"a denial under other numbers", []headgate.Charge{charge("k", 2, cut)}, true},
		{"a denial of several under other numbers", []headgate.Charge{charge("x", 11, limit), charge("k", 1, cut)}, true},
		{"another key", []headgate.Charge{charge("x", 0, limit)}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := memory(t)
			s := around(t, m, denial.Config{MaxStaleness: time.Hour, MaxKeys: 4})
			c := charge("k", 1, limit)
			exhaust(t, s, c.Key, limit)
			if err := m.Refund(t.Context(), charge("k", 5, limit)); err != nil { // elsewhere
				t.Fatal(err)
			}
			cached(t, s, c)
			take(t, s, tt.charges[0], tt.charges[1:]...)
			if d := take(t, s, c); (d.Source == headgate.FromStore) != tt.asks {
				t.Errorf("then %+v, want the store asked: %v", d, tt.asks)
			}
		})
	}
}

// TestGivenBack: a store that takes charges one by one gives back those that had room when another had none. A denial that such a passing
// charge brought about, and that is under way while it is given back, is not remembered.
func TestGivenBack(t *testing.T) {
	m := memory(t)
	tenant, other := charge("k", 10, headgate.PerHour(10)), charge("full", 1, headgate.PerHour(1))
	oneByOne := &takeFunc{Store: m}
	slow := newSlowStore(oneByOne)
	s := around(t, slow, denial.Config{MaxStaleness: time.Hour})
	c := charge("k", 1, tenant.Limit)
	var single sync.WaitGroup
	oneByOne.take = func(ctx context.Context, first headgate.Charge, more ...headgate.Charge) (headgate.Decision, error) {
		if len(more) == 0 {
			return m.Take(ctx, first)
		}
		a, _ := m.Take(ctx, first)
		slow.hold <- struct{}{}
		single.Go(func() {
			if d, err := s.Take(ctx, c); err != nil || d.Allowed {
				t.Errorf("%+v, %v of what is taken", d, err)
			}
		})
		<-slow.held
		b, _ := m.Take(ctx, more[0])
		err := m.Refund(ctx, first)
		states := []headgate.State{{Limit: a.Limit, Allowed: true, Remaining: 10}, {Limit: b.Limit, RetryAfter: b.RetryAfter, ResetAfter: b.ResetAfter}}
		return headgate.Decide(b.At, states), err
	}
	exhaust(t, s, other.Key, other.Limit)
	if d := take(t, s, tenant, other); d.Allowed {
		t.Fatalf("%+v, want the second without room", d)
	}
	slow.release <- struct{}{}
	single.Wait()
	if d := asked(t, s, c); !d.Allowed {
		t.Errorf("%+v, want what was given back", d)
	}
	cached(t, s, other)
}

// TestChangeUnderWay: a denial that is decided and remembered while a change is on its way to the store is forgotten when that returns.
func TestChangeUnderWay(t *testing.T) {
	limit := headgate.Limit{Count: 1, Period: time.Hour}
	c := charge("k", 1, limit)
	for name, change := range map[string]func(*denial.Store) error{
		"refund": func(s *denial.Store) error { return s.Refund(t.Context(), c) },
		"reset":  func(s *denial.Store) error { return s.Reset(t.Context(), c) },
	} {
		t.Run(name, func(t *testing.T) {
			late := &lateStore{Store: memory(t)}
			s := around(t, late, denial.Config{MaxStaleness: time.Hour})
			exhaust(t, s, c.Key, limit)
			if err := s.Refund(t.Context(), charge("k", 0, limit)); err != nil { // gives back nothing, so that the key is asked about again
				t.Fatal(err)
			}
			late.before = func() { asked(t, s, c); cached(t, s, c) }
			if err := change(s); err != nil {
				t.Fatal(err)
			}
			if d := asked(t, s, c); !d.Allowed {
				t.Errorf("%+v, want what was given back", d)
			}
		})
	}
}

// A lateStore calls before ahead of each change.
type lateStore struct {
	headgate.Store
	before func()
}

func (s *lateStore) Refund(ctx context.Context, first headgate.Charge, more ...headgate.Charge) error {
	if s.before != nil {
		s.before()
	}
	return s.Store.Refund(ctx, first, more...)
}

func (s *lateStore) Reset(ctx context.Context, first headgate.Charge, more ...headgate.Charge) error {
	if s.before != nil {
		s.before()
	}
	return s.Store.Reset(ctx, first, more...)
}

// A takeFunc is a store with a Take of its own.
type takeFunc struct {
	headgate.Store
	take func(ctx context.Context, first headgate.Charge, more ...headgate.Charge) (headgate.Decision, error)
}

func (s *takeFunc) Take(ctx context.Context, first headgate.Charge, more ...headgate.Charge) (headgate.Decision, error) {
	return s.take(ctx, first, more...)
}
