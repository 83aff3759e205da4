package headgate_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/storetest"
)

// newMemory returns a Memory whose clock shows what now holds, at first noon of some day.
func newMemory(t testing.TB, maxKeys int) (m *headgate.Memory, now *time.Time) {
	t.Helper()
	m, err := headgate.NewMemory(headgate.MemoryConfig{MaxKeys: maxKeys})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	headgate.SetClock(m, func() time.Time { return noon })
	return m, &noon
}

func take(t testing.TB, store headgate.Store, key string, cost int64, limit headgate.Limit) headgate.Decision {
	t.Helper()
	d, err := store.Take(t.Context(), headgate.Charge{Key: key, Cost: cost, Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestMemoryStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) headgate.Store {
		m, err := headgate.NewMemory(headgate.MemoryConfig{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		return m
	})
}

func BenchmarkMemory(b *testing.B) {
	storetest.Bench(b, func(b *testing.B) headgate.Store {
		m, err := headgate.NewMemory(headgate.MemoryConfig{})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = m.Close() })
		return m
	})
}

func TestMemoryConfig(t *testing.T) {
	if _, err := headgate.NewMemory(headgate.MemoryConfig{MaxKeys: -1}); !errors.Is(err, headgate.ErrInvalidConfig) {
		t.Errorf("error %v, want ErrInvalidConfig", err)
	}
	for _, maxKeys := range []int{1, 2, 63, 64, 65, 1000} {
		m, _ := newMemory(t, maxKeys)
		take(t, m, "ann", 1, headgate.PerDay(2))
		if d := take(t, m, "ann", 1, headgate.PerDay(2)); d.Remaining != 0 {
			t.Errorf("MaxKeys %d: %+v, want none left", maxKeys, d)
		}
	}
}

// TestMemoryBound: however many keys come, no more are held than MaxKeys says, and one that is asked for all the time is among them.
func TestMemoryBound(t *testing.T) {
	const maxKeys = 1_000
	m, now := newMemory(t, maxKeys)
	limit := headgate.PerDay(10)
	for i := range 20 * maxKeys {
		*now = now.Add(time.Microsecond)
		take(t, m, fmt.Sprint("key", i), 1, limit)
		if n := m.Len(); i%1000 == 0 && n > maxKeys {
			t.Fatalf("%d held after %d, want at most %d", n, i, maxKeys)
		}
	}
	if n, evicted := m.Len(), m.Evicted(); n > maxKeys || n < maxKeys/2 || int64(n)+evicted != 20*maxKeys {
		t.Errorf("%d held and %d evicted of %d, want at most %d held", n, evicted, 20*maxKeys, maxKeys)
	}
}

// TestMemoryEvictsWhatEndsFirst: counters that matter for long outlive thousands that matter for a moment. Those that came first lie side by side, so
// that a few places may hold nothing else: how many follows from the secrets of a Memory, so it is the average that counts. Evicted in
// whatever order the places have, fewer than ten would be left.
func TestMemoryEvictsWhatEndsFirst(t *testing.T) {
	const memories, long = 20, 50
	kept := 0
	for range memories {
		m, now := newMemory(t, 256)
		for i := range long {
			take(t, m, fmt.Sprint("long", i), 5, headgate.PerDay(10))
		}
		for i := range 10_000 {
			*now = now.Add(time.Microsecond)
			take(t, m, fmt.Sprint("short", i), 1, headgate.PerSecond(1))
		}
		for i := range long {
			if take(t, m, fmt.Sprint("long", i), 0, headgate.PerDay(10)).Remaining == 5 {
				kept++
			}
		}
	}
	if kept < 30*memories {
		t.Errorf("of %d long-lived counters %.1f are left on average, want 30 or more", long, float64(kept)/memories)
	}
}

// TestMemoryExpiry: counters whose time is over make room without being counted as evicted, a few for each key that comes.
func TestMemoryExpiry(t *testing.T) {
	m, now := newMemory(t, 10_000)
	for i := range 2_000 {
		take(t, m, fmt.Sprint("old", i), 1, headgate.PerSecond(1))
	}
	*now = now.Add(time.Second)
	for i := range 2_000 {
		before := m.Len()
		take(t, m, fmt.Sprint("new", i), 1, headgate.PerSecond(1))
		if after := m.Len(); after > before+1 || after < before-8 {
			t.Fatalf("from %d to %d for one key, want a few steps at most", before, after)
		}
	}
	if n := m.Len(); n > 2_600 || m.Evicted() != 0 {
		t.Errorf("%d held, %d evicted, want the new 2000, few of the old ones, and none evicted", n, m.Evicted())
	}
}

// TestMemoryLogWeighs: the entries of sliding logs count against MaxKeys.
func TestMemoryLogWeighs(t *testing.T) {
	m, now := newMemory(t, 100)
	limit := headgate.Limit{Algorithm: headgate.SlidingLog, Count: 1_000, Period: time.Hour}
	for i := range 50 {
		for range 40 {
			*now = now.Add(time.Microsecond)
			take(t, m, fmt.Sprint("key", i), 1, limit)
		}
	}
	if n := m.Len(); n > 20 || m.Evicted() == 0 {
		t.Errorf("%d logs of 40 entries held, want at most those that 100 keys outweigh", n)
	}
}

// TestMemoryUnseenStaysUnseen: what asks for nothing, or is denied, takes no place.
func TestMemoryUnseenStaysUnseen(t *testing.T) {
	m, _ := newMemory(t, 0)
	for a := headgate.TokenBucket; a <= headgate.SlidingLog; a++ {
		limit := headgate.Limit{Algorithm: a, Count: 5, Period: time.Second}
		take(t, m, "ann", 0, limit)
		take(t, m, "ann", 6, limit)
		if err := m.Refund(t.Context(), headgate.Charge{Key: "ann", Cost: 1, Limit: limit}); err != nil {
			t.Fatal(err)
		}
	}
	if n := m.Len(); n != 0 {
		t.Errorf("%d counters held, want none", n)
	}
}

func TestMemoryClose(t *testing.T) {
	m, _ := newMemory(t, 0)
	charge := headgate.Charge{Key: "ann", Cost: 1, Limit: headgate.PerDay(2)}
	take(t, m, charge.Key, 1, charge.Limit)
	for range 2 { // closing twice is closing once
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	_, err := m.Take(t.Context(), charge)
	refund, reset := m.Refund(t.Context(), charge), m.Reset(t.Context(), charge)
	for _, err := range []error{err, refund, reset} {
		if !errors.Is(err, headgate.ErrClosed) || !errors.Is(err, headgate.ErrStore) {
			t.Errorf("error %v, want ErrClosed in an ErrStore", err)
		}
	}
	if n := m.Len(); n != 0 {
		t.Errorf("%d counters held after Close", n)
	}
}

// TestMemoryHasNoGoroutine: neither while it works nor afterwards.
func TestMemoryHasNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 50 {
		m, now := newMemory(t, 100)
		for i := range 200 {
			*now = now.Add(time.Millisecond)
			take(t, m, fmt.Sprint(i), 1, headgate.PerSecond(1))
		}
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines, %d before", after, before)
	}
}

// TestMemoryAllocations: a decision about one charge of a known key allocates nothing. A sliding log does when it grows.
func TestMemoryAllocations(t *testing.T) {
	m, now := newMemory(t, 0)
	for a := headgate.TokenBucket; a <= headgate.SlidingLog; a++ {
		for _, name := range []string{"", "plan"} {
			for _, cost := range []int64{1, 0, 1_000_001} {
				limit := headgate.Limit{Name: name, Algorithm: a, Count: 1_000_000, Period: time.Second}
				if a == headgate.SlidingLog {
					limit.Count, limit.Period = 20, 20*time.Millisecond // 20 entries held
				}
				charge := headgate.Charge{Key: "ann", Cost: cost, Limit: limit}
				run := func() {
					*now = now.Add(time.Millisecond)
					if _, err := m.Take(t.Context(), charge); err != nil {
						t.Fatal(err)
					}
				}
				take(t, m, charge.Key, 1, limit)
				for range 200 {
					run()
				}
				if n := testing.AllocsPerRun(200, run); n != 0 {
					t.Errorf("%v, name %q, cost %d: %v allocations", limit, name, cost, n)
				}
			}
		}
	}
}

// TestMemoryClock: the instants of decisions never go back, by the clock that a Memory has of its own.
func TestMemoryClock(t *testing.T) {
	m, err := headgate.NewMemory(headgate.MemoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	last := time.Time{}
	for range 10_000 {
		d := take(t, m, "ann", 1, headgate.PerSecond(1000))
		if d.At.Before(last) {
			t.Fatalf("%v after %v", d.At, last)
		}
		last = d.At
	}
}
