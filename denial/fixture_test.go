package denial_test

import (
	"context"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/denial"
	"github.com/headgate/headgate/internal/oracle"
)

var algorithms = []headgate.Algorithm{
	headgate.TokenBucket, headgate.FixedWindow, headgate.AlignedWindow, headgate.SlidingWindow, headgate.SlidingLog,
}

func memory(t testing.TB) *headgate.Memory {
	t.Helper()
	m, err := headgate.NewMemory(headgate.MemoryConfig{MaxKeys: 1024})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func around(t testing.TB, store headgate.Store, cfg denial.Config) *denial.Store {
	t.Helper()
	s, err := denial.New(store, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func charge(key string, cost int64, l headgate.Limit) headgate.Charge {
	return headgate.Charge{Key: key, Cost: cost, Limit: l}
}

func take(t testing.TB, store headgate.Store, first headgate.Charge, more ...headgate.Charge) headgate.Decision {
	t.Helper()
	d, err := store.Take(t.Context(), first, more...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// cached fails unless c is answered by s itself, asked unless the store was asked.
func cached(t testing.TB, s headgate.Store, c headgate.Charge) headgate.Decision {
	t.Helper()
	d := take(t, s, c)
	if d.Allowed || d.Source != headgate.FromCache {
		t.Fatalf("cost %d of %v: %+v, want a denial from the cache", c.Cost, c.Limit, d)
	}
	return d
}

func asked(t testing.TB, s headgate.Store, c headgate.Charge) headgate.Decision {
	t.Helper()
	d := take(t, s, c)
	if d.Source != headgate.FromStore {
		t.Fatalf("cost %d of %v: %+v, want it asked of the store", c.Cost, c.Limit, d)
	}
	return d
}

// exhaust takes all that c has left at once, and has a single token denied.
func exhaust(t testing.TB, s headgate.Store, key string, l headgate.Limit) headgate.Decision {
	t.Helper()
	if left := take(t, s, charge(key, 0, l)).Remaining; left > 0 && !take(t, s, charge(key, left, l)).Allowed {
		t.Fatalf("%d left of %v, and denied", left, l)
	}
	return asked(t, s, charge(key, 1, l))
}

// A clockedStore is the naive model at the time of a clock. It is not safe for concurrent use.
type clockedStore struct {
	model *oracle.Model
	now   func() time.Time
	delay func() // before and after each decision; nil = none
}

func (s *clockedStore) Take(_ context.Context, first headgate.Charge, more ...headgate.Charge) (headgate.Decision, error) {
	if s.delay != nil {
		s.delay()
		defer s.delay()
	}
	return s.model.Take(s.now(), headgate.Decision{}, append([]headgate.Charge{first}, more...)...), nil
}

func (s *clockedStore) Refund(ctx context.Context, first headgate.Charge, more ...headgate.Charge) error {
	at, _ := headgate.TakenAt(ctx)
	s.model.Refund(s.now(), at, append([]headgate.Charge{first}, more...)...)
	return nil
}

func (s *clockedStore) Reset(_ context.Context, first headgate.Charge, more ...headgate.Charge) error {
	s.model.Reset(append([]headgate.Charge{first}, more...)...)
	return nil
}
