package storetest

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate"
)

const (
	callers  = 1_000
	capacity = 100
)

// together calls run from n goroutines at once, as nearly as the machine can, and waits for them. It returns the first error.
func together(n int, run func(i int) error) error {
	var (
		ready, done sync.WaitGroup
		start       = make(chan struct{})
		first       atomic.Pointer[error]
	)
	ready.Add(n)
	for i := range n {
		done.Go(func() {
			ready.Done()
			<-start
			if err := run(i); err != nil {
				first.CompareAndSwap(nil, &err)
			}
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
	if err := first.Load(); err != nil {
		return *err
	}
	return nil
}

// testParallelTakes: 1,000 takes at once of a fresh key with 100 tokens are granted exactly 100.
func testParallelTakes(t *testing.T, store headgate.Store) {
	each(t, store, capacity, func(t *testing.T, s subject) {
		var granted atomic.Int64
		err := together(callers, func(int) error {
			d, err := store.Take(t.Context(), s.charge(1))
			if d.Allowed {
				granted.Add(1)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if granted.Load() != capacity {
			t.Errorf("%d granted, want %d", granted.Load(), capacity)
		}
		s.denied(t, 1, 0)
	})
}

// testParallelCosts: with different costs the grants and what is left add up to the capacity, and nobody was denied what is left at the
// end, since there was never less.
func testParallelCosts(t *testing.T, store headgate.Store) {
	each(t, store, capacity, func(t *testing.T, s subject) {
		var granted atomic.Int64
		var denied [8]atomic.Bool
		err := together(callers, func(i int) error {
			cost := int64(1 + (i*5)%7)
			d, err := store.Take(t.Context(), s.charge(cost))
			if d.Allowed {
				granted.Add(cost)
			} else {
				denied[cost].Store(true)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		left := s.take(t, 0).Remaining
		if granted.Load()+left != capacity {
			t.Errorf("%d granted and %d left, want %d together", granted.Load(), left, capacity)
		}
		for cost := int64(1); cost <= min(left, 7); cost++ {
			if denied[cost].Load() {
				t.Errorf("%d were denied, though %d are left", cost, left)
			}
		}
	})
}

// testParallelRequestsOfSeveral: requests of several keys, in any order, take from all of them or from none, and come to an end. What is
// granted and what is left of each key add up.
func testParallelRequestsOfSeveral(t *testing.T, store headgate.Store) {
	each(t, store, capacity, func(t *testing.T, s subject) {
		const keys = 4
		subjects, granted := [keys]subject{}, [keys]atomic.Int64{}
		for i := range subjects {
			subjects[i] = s.of(newKey(t))
		}
		err := together(callers/2, func(i int) error {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			order := random.Perm(keys)[:1+i%keys]
			charges := make([]headgate.Charge, len(order))
			for j, k := range order {
				charges[j] = subjects[k].charge(int64(1 + random.IntN(3)))
			}
			d, err := store.Take(t.Context(), charges[0], charges[1:]...)
			for j, k := range order {
				if d.Allowed {
					granted[k].Add(charges[j].Cost)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range subjects {
			if left := subjects[i].take(t, 0).Remaining; granted[i].Load()+left != capacity {
				t.Errorf("key %d: %d granted and %d left, want %d together", i, granted[i].Load(), left, capacity)
			}
		}
	})
}

// testParallelRefunds: tokens that are taken and given back again and again are never more than there are, and all there at the end.
func testParallelRefunds(t *testing.T, store headgate.Store) {
	each(t, store, 10, func(t *testing.T, s subject) {
		var held, most atomic.Int64
		err := together(50, func(int) error {
			for range 20 {
				d, err := store.Take(t.Context(), s.charge(1))
				if err != nil {
					return err
				}
				if !d.Allowed {
					continue
				}
				for now := held.Add(1); ; {
					if old := most.Load(); old >= now || most.CompareAndSwap(old, now) {
						break
					}
				}
				held.Add(-1)
				if err := store.Refund(t.Context(), s.charge(1)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if most.Load() > 10 {
			t.Errorf("%d tokens held at once, want at most 10", most.Load())
		}
		s.left(t, 10)
	})
}
