package table_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/headgate/headgate/internal/algorithm"
	"github.com/headgate/headgate/internal/table"
)

// digest returns a digest that leads to any segment and any bucket: spread looks random, and is never twice the same.
func digest(i int) table.Digest {
	x := uint64(i+1) * 0x9e3779b97f4a7c15
	x ^= x >> 29
	return table.Digest{Hi: x * 0xbf58476d1ce4e5b9, Lo: (x ^ x>>32) * 0x94d049bb133111eb}
}

// with does something under the lock of the segment of d.
func with(t testing.TB, tab *table.Table, d table.Digest, do func(s *table.Segment)) {
	t.Helper()
	s := tab.Segment(tab.SegmentOf(d))
	if !s.Lock() {
		t.Error("the table is closed")
		return
	}
	defer s.Unlock()
	do(s)
}

// add makes a slot for d, that matters until the instant dead.
func add(t testing.TB, tab *table.Table, d table.Digest, now, dead int64) {
	t.Helper()
	with(t, tab, d, func(s *table.Segment) {
		s.SetState(s.Add(d, now), algorithm.State{At: now, Life: dead - now, A: 1})
	})
}

func holds(t testing.TB, tab *table.Table, d table.Digest) (found bool) {
	t.Helper()
	with(t, tab, d, func(s *table.Segment) { found = s.Find(d) != nil })
	return found
}

// TestDigests: every part of what names a counter tells it from others, the owner from the limit's name too, and another table has other digests.
func TestDigests(t *testing.T) {
	limits := []table.Limit{
		{}, {Name: "a"}, {Name: "b"}, {Name: "ab"}, {Name: "a", Kind: algorithm.FixedWindow},
		{Count: 1, Period: 2, Burst: 3}, {Count: 2, Period: 1, Burst: 3}, {Count: 1, Period: 3, Burst: 2}, {Count: 3, Period: 2, Burst: 1},
		{Count: 1, Period: 2, Burst: 3, Kind: algorithm.FixedWindow}, {Count: 1, Period: 2, Burst: 2, Kind: algorithm.FixedWindow},
	}
	tab, other := table.New(100), table.New(100)
	seen := map[uint64]string{} // by either half
	for i, limit := range limits {
		for _, owner := range []string{"", "a", "b", "ab", "ba", "a\x00b"} {
			d, name := tab.Digest(owner, tab.OfLimit(&limit)), fmt.Sprintf("%q under limit %d", owner, i)
			for _, half := range []uint64{d.Hi, d.Lo} {
				if seen[half] != "" {
					t.Errorf("%s shares half a digest with %s", name, seen[half])
				}
				seen[half] = name
			}
			if d != tab.Digest(owner, tab.OfLimit(&limit)) {
				t.Errorf("%s has two digests", name)
			}
			if d == other.Digest(owner, other.OfLimit(&limit)) {
				t.Errorf("%s has one digest in two tables", name)
			}
		}
	}
}

// TestStates: any state comes back as it was put in, whether it fits into a slot or not, and whatever was there before.
func TestStates(t *testing.T) {
	const longAgo = -1 << 62 // before the end of them all
	const year = 366 * 24 * 3600 * 1e6
	states := []algorithm.State{
		{},
		{At: 1_800_000_000_000_000, Life: 1_000_000, A: 5, B: 999_999},
		{At: 1<<52 - 1, Life: 1<<48 - 2, A: 1<<46 - 1, B: 1<<46 - 1},
		{At: 1 << 52, Life: 1, A: 1, B: 1},
		{At: 1, Life: 1<<48 - 1, A: 1, B: 1},
		{At: 1, Life: 1<<36 - 1, A: 1, B: 1},
		{At: 1, Life: 1 << 36, A: 1 << 18, B: 1 << 18},
		{At: 1, Life: 1 << 48, A: 1, B: 1},
		{At: 1, Life: 8 * year, A: 1 << 46, B: 0},
		{At: 1, Life: 2 * year, A: 1e15, B: 1e15},
		{At: 1, Life: year, A: 0, B: 1 << 46},
		{At: -62_135_596_800_000_000, Life: year, A: 3, B: 4},
		{At: math.MaxInt64, Life: math.MaxInt64, A: math.MaxInt64, B: math.MaxInt64},
	}
	tab := table.New(100)
	one, two := digest(1), digest(2)
	for _, before := range states {
		for _, state := range states {
			with(t, tab, one, func(s *table.Segment) {
				slot := s.Add(one, longAgo)
				s.SetState(slot, before)
				neighbour := s.Add(two, longAgo)
				s.SetState(neighbour, before)
				slot = s.Find(one)
				s.SetState(slot, state)
				if got := s.State(slot); got != state {
					t.Errorf("%+v came back as %+v", state, got)
				}
				if got := s.State(s.Find(two)); got != before {
					t.Errorf("%+v came back as %+v after its neighbour was written", before, got)
				}
				s.Remove(one)
				s.Remove(two)
			})
		}
	}
	if tab.Len() != 0 || tab.Shelved() != 0 {
		t.Errorf("%d slots and %d states beside them, want none", tab.Len(), tab.Shelved())
	}
}

// TestClose: a closed table holds nothing and takes nothing, and a slot that was asked for before is not there after.
func TestClose(t *testing.T) {
	tab := table.New(1_000)
	for i := range 100 {
		add(t, tab, digest(i), 0, 10)
	}
	tab.Close()
	for i := range 100 {
		if tab.Segment(tab.SegmentOf(digest(i))).Lock() {
			t.Fatal("a segment of a closed table can be locked")
		}
	}
	if tab.Len() != 0 {
		t.Errorf("%d slots in a closed table", tab.Len())
	}
}

// TestInstant: the instants of a segment never go back.
func TestInstant(t *testing.T) {
	tab := table.New(1)
	with(t, tab, digest(1), func(s *table.Segment) {
		for _, step := range []struct{ now, want int64 }{{5, 5}, {3, 5}, {5, 5}, {6, 6}, {0, 6}} {
			if got := s.Instant(step.now, nil); got != step.want {
				t.Errorf("Instant(%d) = %d, want %d", step.now, got, step.want)
			}
		}
	})
}

// TestSize: a counter takes less than 64 bytes in all, from when the table is a twentieth full; a table takes little before it holds any.
func TestSize(t *testing.T) {
	for _, most := range []int{300_000, 5_000_000} {
		tab := table.New(most)
		if each := float64(tab.Bytes()) / float64(most); each > 0.3 {
			t.Errorf("an empty table for %d counters takes %.2f bytes for each", most, each)
		}
		for n := range 300_000 {
			add(t, tab, digest(n), 0, 1_000_000)
			if n >= max(60_000, most/20) && n%10_000 == 0 {
				if each := float64(tab.Bytes()-tab.BytesAtFirst()) / float64(n+1); each > 63 {
					t.Errorf("%d counters of at most %d: %.1f bytes each", n+1, most, each)
				}
			}
		}
		if tab.Evicted() != 0 {
			t.Errorf("%d evicted", tab.Evicted())
		}
	}
}

// TestShrink: a table that was full and is empty gives its memory back.
func TestShrink(t *testing.T) {
	const n = 50_000
	tab := table.New(n)
	for i := range n {
		add(t, tab, digest(i), 0, 10)
	}
	full := tab.Bytes()
	for i := range n {
		with(t, tab, digest(i), func(s *table.Segment) { s.Remove(digest(i)) })
	}
	if left := tab.Bytes(); 2*left > full {
		t.Errorf("%d bytes of %d are left", left, full)
	}
	if tab.Len() != 0 {
		t.Errorf("%d slots are left", tab.Len())
	}
}

// TestSegments: a table has segments enough to hold what it is for, with room for those that get more than their share; few where it is
// small; and no more than a garbage collection is soon done with, where tens of millions lie in it.
func TestSegments(t *testing.T) {
	for max := 1; max <= table.MaxSlots/2; max *= 2 {
		segments, places := table.SegmentsFor(max)
		if segments&(segments-1) != 0 || segments*places < 2*max {
			t.Errorf("%d segments of at most %d slots for a table of %d", segments, places, max)
		}
		if max < 128 && segments > 1 || max <= 16<<20 && segments > 4096 {
			t.Errorf("%d segments for a table of %d", segments, max)
		}
	}
}
