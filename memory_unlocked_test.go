package headgate_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// beside runs the callers until stop is called, which waits for them. Each is called again and again, with a number that counts up.
func beside(callers ...func(i int)) (stop func()) {
	var stopped atomic.Bool
	var done sync.WaitGroup
	for _, call := range callers {
		done.Go(func() {
			for i := 0; !stopped.Load(); i++ {
				call(i)
			}
		})
	}
	return func() {
		stopped.Store(true)
		done.Wait()
	}
}

// churn makes keys come and go, so that the slots of all others move: parts of the Memory grow, shrink and evict.
func churn(t *testing.T, m *headgate.Memory) func(i int) {
	limit := headgate.Limit{Algorithm: headgate.FixedWindow, Count: 10, Period: time.Hour}
	return func(i int) {
		c := headgate.Charge{Key: fmt.Sprint("other", i%400), Cost: 1, Limit: limit}
		_, err := m.Take(t.Context(), c)
		if err == nil && i/400%2 == 1 {
			err = m.Reset(t.Context(), c)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// TestMemoryOneOwner: however many look at a key, are denied it, and have other keys come and go around it, for the one who alone changes
// what it has used each decision is the one that follows from the last; and the others see it as it was after one of the changes, never as
// a mixture of two.
func TestMemoryOneOwner(t *testing.T) {
	const count, some, most = 1 << 40, 5<<18 + 7, 900<<18 + 200_000 // used: what differs in all parts of a number
	for a := headgate.TokenBucket; a <= headgate.SlidingLog; a++ {
		t.Run(a.String(), func(t *testing.T) {
			m, _ := newMemory(t, 1000)
			limit := headgate.Limit{Algorithm: a, Count: count, Period: time.Hour}
			if a == headgate.SlidingLog {
				limit.Count = headgate.MaxLogCount
			}
			charge := func(cost int64) headgate.Charge {
				if a == headgate.SlidingLog {
					cost /= most / 1000
				}
				return headgate.Charge{Key: "ann", Cost: cost, Limit: limit}
			}
			all := charge(count).Limit.Count
			left := map[int64]bool{all: true, all - charge(some).Cost: true, all - charge(some).Cost - charge(most).Cost: true, 0: true}
			stranger := func(cost int64) func(int) {
				return func(int) {
					c := charge(0)
					if cost > 0 {
						c.Cost = all + 1
					}
					d, err := m.Take(t.Context(), c)
					if err != nil || !left[d.Remaining] || d.Allowed != (cost == 0) {
						t.Errorf("cost %d: %+v, %v", c.Cost, d, err)
					}
				}
			}
			stop := beside(stranger(0), stranger(1), churn(t, m))
			defer stop()
			for range 300 {
				ownerTurn(t, m, all, charge(some), charge(most))
			}
		})
	}
}

// ownerTurn takes some of a key's tokens, then most, then the rest, is denied, gives back what it took last, takes it again, and resets the key.
func ownerTurn(t *testing.T, m *headgate.Memory, all int64, some, most headgate.Charge) {
	rest, one := some, some
	rest.Cost, one.Cost = all-some.Cost-most.Cost, 1
	left := all
	ask := func(c headgate.Charge, allowed bool) {
		d := take(t, m, c.Key, c.Cost, c.Limit)
		if allowed {
			left -= c.Cost
		}
		if d.Allowed != allowed || d.Remaining != left {
			t.Errorf("cost %d: %+v, want %v and %d left", c.Cost, d, allowed, left)
		}
	}
	ask(some, true)
	ask(most, true)
	ask(rest, true)
	ask(one, false)
	if err := m.Refund(t.Context(), rest); err != nil {
		t.Error(err)
	}
	left += rest.Cost
	ask(rest, true)
	ask(one, false)
	if err := m.Reset(t.Context(), one); err != nil {
		t.Error(err)
	}
}

// TestMemoryParallelSingles: of many who take one token at a time, some of whom give it back, exactly as many hold one in the end as there are; by each algorithm.
func TestMemoryParallelSingles(t *testing.T) {
	const callers, each, count = 8, 2_000, 1_000
	for a := headgate.TokenBucket; a <= headgate.SlidingLog; a++ {
		t.Run(a.String(), func(t *testing.T) {
			m, _ := newMemory(t, 0)
			c := headgate.Charge{Key: "ann", Cost: 1, Limit: headgate.Limit{Algorithm: a, Count: count, Period: time.Hour}}
			stop := beside(churn(t, m))
			var held atomic.Int64
			var done sync.WaitGroup
			for range callers {
				done.Go(func() {
					for i := range each {
						d, err := m.Take(t.Context(), c)
						if err == nil && d.Allowed {
							held.Add(1)
							if i%3 == 0 {
								held.Add(-1) // before somebody else can have it
								err = m.Refund(t.Context(), c)
							}
						}
						if n := held.Load(); err != nil || n > count {
							t.Errorf("%d held, %v", n, err)
						}
					}
				})
			}
			done.Wait()
			stop()
			for take(t, m, c.Key, 1, c.Limit).Allowed {
				held.Add(1)
			}
			if held.Load() != count {
				t.Errorf("%d held in the end, want %d", held.Load(), count)
			}
		})
	}
}

// TestMemoryInstantsOfLooks: by its own clock, who looks at a key, or is denied it, and so changes nothing, does so not before the grant that left
// what it finds, and not after the next one.
func TestMemoryInstantsOfLooks(t *testing.T) {
	const takers, lookers, each = 3, 3, 4_000
	const count = takers * each
	m, err := headgate.NewMemory(headgate.MemoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	limit := headgate.Limit{Algorithm: headgate.FixedWindow, Count: count, Period: 24 * time.Hour}
	granted := make([]time.Time, count) // by the tokens left
	var seen [lookers][]headgate.Decision
	var taking, done sync.WaitGroup
	var stop atomic.Bool
	for range takers {
		taking.Go(func() {
			for range each {
				d := take(t, m, "ann", 1, limit)
				granted[d.Remaining] = d.At
			}
		})
	}
	for i := range seen {
		done.Go(func() {
			for look := int64(0); !stop.Load(); look++ {
				seen[i] = append(seen[i], take(t, m, "ann", look%2*(count+1), limit))
			}
		})
	}
	taking.Wait()
	stop.Store(true)
	done.Wait()
	for i := range seen {
		for _, d := range seen[i] {
			if left := d.Remaining; left < count && d.At.Before(granted[left]) || left > 0 && d.At.After(granted[left-1]) {
				t.Fatalf("%d left at %v; the grant that left them was at %v", left, d.At, granted[min(left, count-1)])
			}
		}
	}
}
