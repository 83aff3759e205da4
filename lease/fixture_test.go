package lease_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/lease"
)

// A remote is a store that is some way off, counts its calls, and can be away. It is used inside of a bubble of synctest.
type remote struct {
	headgate.Store
	way      time.Duration // there, and as long back
	resetWay time.Duration // there, for resets

	mu      sync.Mutex
	takes   []headgate.Charge // the first charge of each
	refunds []headgate.Charge
	fault   func(headgate.Charge) error // of takes, in the store's place
	lose    func(headgate.Charge) bool  // whether the answer is lost, after it was
}

func (r *remote) Take(ctx context.Context, first headgate.Charge, more ...headgate.Charge) (headgate.Decision, error) {
	r.mu.Lock()
	r.takes = append(r.takes, first)
	fault, lose := r.fault, r.lose
	r.mu.Unlock()
	if err := travel(ctx, r.way); err != nil {
		return headgate.Decision{}, &headgate.StoreError{Op: "take", Err: err}
	}
	if fault != nil {
		if err := fault(first); err != nil {
			return headgate.Decision{}, &headgate.StoreError{Op: "take", Err: err}
		}
	}
	d, err := r.Store.Take(ctx, first, more...)
	if err == nil {
		err = travel(ctx, r.way)
	}
	if lose != nil && lose(first) {
		err = context.DeadlineExceeded
	}
	if err != nil {
		return headgate.Decision{}, &headgate.StoreError{Op: "take", Err: err}
	}
	return d, nil
}

func (r *remote) Refund(ctx context.Context, first headgate.Charge, more ...headgate.Charge) error {
	r.mu.Lock()
	r.refunds = append(r.refunds, first)
	r.mu.Unlock()
	if err := travel(ctx, r.way); err != nil {
		return err
	}
	return r.Store.Refund(ctx, first, more...)
}

func (r *remote) Reset(ctx context.Context, first headgate.Charge, more ...headgate.Charge) error {
	if err := travel(ctx, r.resetWay); err != nil {
		return err
	}
	return r.Store.Reset(ctx, first, more...)
}

// calls returns how many takes there were, and forgets them.
func (r *remote) calls() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.takes)
	r.takes = nil
	return n
}

// returned returns how many refunds there were.
func (r *remote) returned() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.refunds)
}

func travel(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return ctx.Err()
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A fixture is a leased store in a bubble, with one key under one limit.
type fixture struct {
	*lease.Store
	t      testing.TB
	remote *remote
	limit  headgate.Limit
}

// open returns a fixture on a Memory. The bubble must have begun.
func open(t testing.TB, limit headgate.Limit, cfg lease.Config) *fixture {
	t.Helper()
	far := &remote{Store: newMemory(t), way: time.Millisecond}
	f := &fixture{newStore(t, far, cfg), t, far, limit}
	t.Cleanup(func() { f.close() })
	return f
}

func (f *fixture) close() {
	f.t.Helper()
	if err := f.Close(context.Background()); err != nil {
		f.t.Errorf("Close: %v", err)
	}
}

func (f *fixture) charge(cost int64) headgate.Charge {
	return headgate.Charge{Key: "k", Cost: cost, Limit: f.limit}
}

func (f *fixture) take(cost int64) headgate.Decision {
	f.t.Helper()
	d, err := f.Take(f.t.Context(), f.charge(cost))
	if err != nil {
		f.t.Fatalf("Take: %v", err)
	}
	return d
}

// warm asks at a rate until there is a lease, and returns its first decision.
func (f *fixture) warm(every time.Duration) headgate.Decision {
	f.t.Helper()
	for range 1000 {
		if d := f.take(1); d.Source == headgate.FromLease {
			return d
		}
		time.Sleep(every)
	}
	f.t.Fatal("nothing is leased")
	return headgate.Decision{}
}

// left is what the store itself says is left.
func (f *fixture) left() int64 {
	f.t.Helper()
	d, err := f.remote.Store.Take(f.t.Context(), f.charge(0))
	if err != nil {
		f.t.Fatal(err)
	}
	return d.Remaining
}

// balance fails unless every leased token has come to one end.
func (f *fixture) balance() lease.Stats {
	f.t.Helper()
	s := f.Stats()
	if s.Leased+s.Refunded != s.Spent+s.GivenBack+s.Stranded+s.Held {
		f.t.Errorf("%+v does not add up", s)
	}
	return s
}
