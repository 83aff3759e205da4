package lease_test

import (
	"context"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/lease"
)

// A slowRefund is a store whose refunds wait.
type slowRefund struct {
	headgate.Store
	begun, goOn chan struct{}
}

func (s *slowRefund) Refund(ctx context.Context, c headgate.Charge, more ...headgate.Charge) error {
	s.begun <- struct{}{}
	<-s.goOn
	return s.Store.Refund(ctx, c, more...)
}

// TestResetWhileTokensComeBack resets a counter while what was leased of it is on its way back: it does not arrive after the reset, beside all that
// the store then grants.
func TestResetWhileTokensComeBack(t *testing.T) {
	m, err := headgate.NewMemory(headgate.MemoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	inner := &slowRefund{Store: m, begun: make(chan struct{}, 1), goOn: make(chan struct{})}
	s, err := lease.New(inner, lease.Config{Lifetime: time.Second, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	c := headgate.Charge{Key: "k", Cost: 1, Limit: headgate.Limit{Algorithm: headgate.AlignedWindow, Count: 100, Period: 1000 * time.Hour}}
	take := func(store headgate.Store) bool {
		d, err := store.Take(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		return d.Allowed
	}
	for range 20 {
		take(s)
	}
	if s.Stats().Held == 0 {
		t.Fatal("nothing is leased")
	}
	<-inner.begun // what nobody asks for goes back
	reset := make(chan error)
	go func() { reset <- s.Reset(context.Background(), c) }()
	select {
	case <-reset:
		t.Error("the reset did not wait for what is on its way back")
	case inner.goOn <- struct{}{}:
		if err := <-reset; err != nil {
			t.Error(err)
		}
	}
	close(inner.goOn)
	granted := 0
	for range 300 {
		if take(m) { // another process
			granted++
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for range 300 {
		if take(m) {
			granted++
		}
	}
	if granted != 100 {
		t.Errorf("%d granted after the reset, in one window of 100", granted)
	}
}

// TestOldNumbersComeBack raises a limit. A process that has not met the new numbers gives back under the old ones what it leased: what was spent under the
// new ones stays spent.
func TestOldNumbersComeBack(t *testing.T) {
	for _, a := range []headgate.Algorithm{headgate.TokenBucket, headgate.FixedWindow, headgate.AlignedWindow, headgate.SlidingWindow} {
		m, err := headgate.NewMemory(headgate.MemoryConfig{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := lease.New(m, lease.Config{})
		if err != nil {
			t.Fatal(err)
		}
		limit := headgate.Limit{Name: "n", Algorithm: a, Count: 100, Period: 1000 * time.Hour}
		for range 10 {
			if _, err := s.Take(t.Context(), headgate.Charge{Key: "k", Cost: 1, Limit: limit}); err != nil {
				t.Fatal(err)
			}
		}
		limit.Count = 1000
		if d, err := m.Take(t.Context(), headgate.Charge{Key: "k", Cost: 800, Limit: limit}); err != nil || !d.Allowed {
			t.Fatalf("%v: %+v, %v", a, d, err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		d, err := m.Take(t.Context(), headgate.Charge{Key: "k", Limit: limit})
		if err != nil || d.Remaining > 190 {
			t.Errorf("%v: %d of 1000 left after 810 were spent, %v", a, d.Remaining, err)
		}
	}
}
