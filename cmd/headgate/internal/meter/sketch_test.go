package meter

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// check holds what a sketch promises against exact counts, and that its lists are whole.
func check(t *testing.T, s *sketch, exact map[string]uint64) {
	t.Helper()
	var n uint64
	for _, count := range exact {
		n += count
	}
	bound := n / uint64(s.size)
	if s.added != n || len(s.counters) > s.size {
		t.Fatalf("%d keys in %d counters, want %d in at most %d", s.added, len(s.counters), n, s.size)
	}
	for key, count := range exact {
		c := s.counters[key]
		switch {
		case c == nil && count > bound:
			t.Fatalf("%s came %d times of %d and has no counter of %d", key, count, n, s.size)
		case c == nil && count > s.floor():
			t.Fatalf("%s came %d times, above the floor %d", key, count, s.floor())
		case c != nil && (c.on.count < count || c.on.count-c.excess > count || c.excess > bound):
			t.Fatalf("%s came %d times, its counter says %d with an excess of %d, want at most %d", key, count, c.on.count, c.excess, bound)
		}
	}
	seen, last, sum := 0, ^uint64(0), uint64(0)
	s.each(func(key string, count, _ uint64) {
		if s.counters[key].key != key || count > last {
			t.Fatalf("counter %s of %d after one of %d", key, count, last)
		}
		seen, last, sum = seen+1, count, sum+count
	})
	if seen != len(s.counters) || sum != n {
		t.Fatalf("%d counters of %d in all, want %d of %d", seen, sum, len(s.counters), n)
	}
}

func TestSketchAgainstExactCounts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(random, 1.1, 1, 5000)
	streams := map[string]func(i int) int{
		"skewed":         func(int) int { return int(zipf.Uint64()) },
		"even":           func(int) int { return random.IntN(300) },
		"all different":  func(i int) int { return i },
		"few":            func(int) int { return random.IntN(10) },
		"one":            func(int) int { return 0 },
		"heavy, drowned": func(i int) int { return max(0, i%3-1) * i }, // a key that comes twice in three, and an attack around it
		"late":           func(i int) int { return min(i, 5000) },
	}
	for name, next := range streams {
		for _, size := range []int{1, 2, 50} {
			t.Run(fmt.Sprintf("%s/%d", name, size), func(t *testing.T) {
				s, exact := newSketch(size), make(map[string]uint64)
				for i := range 10_000 {
					key := fmt.Sprint(next(i))
					s.add(key)
					exact[key]++
					if i%997 == 0 {
						check(t, s, exact)
					}
				}
				check(t, s, exact)
			})
		}
	}
}

// Once it is full, keys that it knows cost nothing, and it does not grow.
func TestSketchAllocatesNothingForKnownKeys(t *testing.T) {
	s := newSketch(10)
	keys := make([]string, 10)
	for i := range keys {
		keys[i] = fmt.Sprint(i)
		s.add(keys[i])
	}
	if n := testing.AllocsPerRun(1000, func() { s.add(keys[3]) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func BenchmarkSketch(b *testing.B) {
	s := newSketch(topSize)
	zipf := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.1, 1, 100_000)
	keys := make([]string, 1<<14)
	for i := range keys {
		keys[i] = fmt.Sprint(zipf.Uint64())
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		s.add(keys[i%len(keys)])
		i++
	}
}
