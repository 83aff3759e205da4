package table_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/headgate/headgate/internal/algorithm"
	"github.com/headgate/headgate/internal/table"
)

// forever is an instant that no test comes to.
const forever = 1 << 40

// TestModel holds a table to a map, many at once. Each worker has digests of its own, in segments that it shares with the others, so
// that what it finds is decided by what it did itself. No slot is evicted or dies.
func TestModel(t *testing.T) {
	const workers, each, steps = 8, 3_000, 40_000
	tab := table.New(1 << 16)
	var done sync.WaitGroup
	held := make([]int, workers)
	for w := range workers {
		done.Go(func() {
			random := rand.New(rand.NewPCG(uint64(w), 1))
			model := map[table.Digest]algorithm.State{}
			for range steps {
				step(t, tab, model, random, digest(w*each+random.IntN(each)))
			}
			for i := range each {
				step(t, tab, model, nil, digest(w*each+i))
			}
			held[w] = len(model)
		})
	}
	done.Wait()
	sum := 0
	for _, n := range held {
		sum += n
	}
	if tab.Len() != sum || tab.Evicted() != 0 {
		t.Errorf("%d slots, %d evicted; the models hold %d", tab.Len(), tab.Evicted(), sum)
	}
}

// TestCollisions is TestModel for digests whose search begins at one and the same bucket, and that agree in a half: nothing but the other
// one tells them apart.
func TestCollisions(t *testing.T) {
	tab := table.New(1 << 14)
	random := rand.New(rand.NewPCG(3, 4))
	model := map[table.Digest]algorithm.State{}
	homes := []table.Digest{digest(1), digest(2), digest(3)}
	for range 60_000 {
		step(t, tab, model, random, digest(random.IntN(120)).SetHome(homes[random.IntN(len(homes))]))
	}
	for i := range 120 {
		for _, home := range homes {
			step(t, tab, model, nil, digest(i).SetHome(home))
		}
	}
	if tab.Len() != len(model) {
		t.Errorf("%d slots, the model holds %d", tab.Len(), len(model))
	}
	for d := range model {
		with(t, tab, d, func(s *table.Segment) { s.Remove(d) })
	}
	if tab.Len() != 0 || tab.Past() != 0 || tab.Shelved() != 0 {
		t.Errorf("of %d slots, %d are left, %d counted as passed, %d beside them", len(model), tab.Len(), tab.Past(), tab.Shelved())
	}
}

// step compares what the table and the model hold for d and, with random, changes it in both.
func step(t *testing.T, tab *table.Table, model map[table.Digest]algorithm.State, random *rand.Rand, d table.Digest) {
	with(t, tab, d, func(s *table.Segment) {
		slot := s.Find(d)
		want, known := model[d]
		if (slot != nil) != known {
			t.Errorf("found: %v, want %v", slot != nil, known)
			return
		}
		if known && s.State(slot) != want {
			t.Errorf("found %+v, want %+v", s.State(slot), want)
			return
		}
		if random == nil {
			return
		}
		if random.IntN(5) < 2 {
			s.Remove(d)
			delete(model, d)
			return
		}
		if slot == nil {
			slot = s.Add(d, 0)
		}
		state := algorithm.State{At: random.Int64N(1 << 53), Life: forever, A: random.Int64N(1 << 47), B: random.Int64N(1 << 46)}
		s.SetState(slot, state)
		model[d] = state
	})
}

// TestOneOfMany: a slot that many ask for at once has one state, and no write is lost.
func TestOneOfMany(t *testing.T) {
	const workers, each = 8, 5_000
	tab := table.New(100)
	d := digest(1)
	var done sync.WaitGroup
	for range workers {
		done.Go(func() {
			for range each {
				with(t, tab, d, func(s *table.Segment) {
					slot := s.Find(d)
					if slot == nil {
						slot = s.Add(d, 0)
					}
					state := s.State(slot)
					s.SetState(slot, algorithm.State{At: 1, Life: forever, A: state.A + 1})
				})
			}
		})
	}
	done.Wait()
	with(t, tab, d, func(s *table.Segment) {
		if got := s.State(s.Find(d)).A; got != workers*each {
			t.Errorf("%d counted, want %d", got, workers*each)
		}
	})
}

// TestChurn is for the race detector: a full table, whose slots die and are evicted while others look at them, and that is then closed.
func TestChurn(t *testing.T) {
	tab := table.New(500)
	var done sync.WaitGroup
	for worker := range 8 {
		done.Go(func() {
			for i := range 1_000 {
				d := digest(worker*1_000 + i)
				s := tab.Segment(tab.SegmentOf(d))
				if !s.Lock() {
					return
				}
				s.SetState(s.Add(d, int64(i)), algorithm.State{At: int64(i), Life: 50, A: 1})
				s.Unlock()
				if worker == 0 && i == 900 {
					tab.Close()
				}
			}
		})
	}
	done.Wait()
	if n := tab.Len(); n != 0 {
		t.Errorf("%d slots in a table that was closed while slots were added", n)
	}
}
