package table_test

import (
	"testing"

	"github.com/headgate/headgate/internal/algorithm"
	"github.com/headgate/headgate/internal/table"
)

// TestFullTable: at its bound a table takes each new slot for an old one, keeps the new one, and counts what it dropped before its time.
func TestFullTable(t *testing.T) {
	for _, most := range []int{1, 2, 10, 64, 1_000} {
		tab := table.New(most)
		for i := range 5 * most {
			add(t, tab, digest(i), int64(i), int64(i)+1_000_000)
			if !holds(t, tab, digest(i)) {
				t.Fatalf("bound %d: slot %d was dropped at once", most, i)
			}
		}
		if n := tab.Len(); int64(n)+tab.Evicted() != int64(5*most) {
			t.Errorf("bound %d: %d held and %d evicted of %d", most, n, tab.Evicted(), 5*most)
		}
		if n := tab.Len(); n > most+most/8 {
			t.Errorf("bound %d: %d held", most, n)
		}
	}
}

// TestSweep: what no longer matters goes as others come, a bounded number for each, and is not counted as evicted; what matters stays.
func TestSweep(t *testing.T) {
	tab := table.New(10_000)
	for i := range 1_000 {
		add(t, tab, digest(i), 0, 100)
	}
	add(t, tab, digest(1_000), 0, 101)
	for i := 2_000; i < 8_000; i++ {
		before := tab.Len()
		add(t, tab, digest(i), 100, 200)
		if gone := before + 1 - tab.Len(); gone < 0 || gone > 6 {
			t.Fatalf("one slot came and %d went", gone)
		}
	}
	for i := range 1_000 {
		if holds(t, tab, digest(i)) {
			t.Errorf("slot %d is still there, many steps later", i)
		}
	}
	if !holds(t, tab, digest(1_000)) || tab.Evicted() != 0 {
		t.Errorf("what matters was dropped, or %d counted as evicted", tab.Evicted())
	}
}

// TestSweepFreesMemory: when most of what a table held is over, it takes less memory.
func TestSweepFreesMemory(t *testing.T) {
	tab := table.New(1 << 16)
	for i := range 60_000 {
		add(t, tab, digest(i), 0, 100)
	}
	full := tab.Bytes()
	for i := 100_000; i < 115_000; i++ { // each is over when the next comes
		add(t, tab, digest(i), int64(i), 1)
	}
	if n, now := tab.Len(), tab.Bytes(); n > 8_000 || now > full/2 {
		t.Errorf("%d slots in %d bytes, of 60000 in %d", n, now, full)
	}
}

// TestEvictsFirstToDie: where the hand finds others beside it, a slot that matters longest stays.
func TestEvictsFirstToDie(t *testing.T) {
	tab := table.New(64)
	add(t, tab, digest(0), 0, 1_000_000)
	for i := 1; i < 2_000; i++ {
		add(t, tab, digest(i), 1, 1_000)
	}
	if !holds(t, tab, digest(0)) {
		t.Error("the slot that matters longest was evicted")
	}
}

// TestLogsWeigh: what a log holds counts, and a log that grows evicts what outlives it but not itself.
func TestLogsWeigh(t *testing.T) {
	tab := table.New(10)
	for i := range 5 {
		add(t, tab, digest(i), 0, forever)
	}
	log := digest(100)
	growLog(t, tab, log)
	if !holds(t, tab, log) || tab.Len() != 1 || tab.Evicted() != 5 {
		t.Errorf("%d slots, %d evicted, want the log alone", tab.Len(), tab.Evicted())
	}
	with(t, tab, log, func(s *table.Segment) { s.Remove(log) })
	for i := range 10 {
		add(t, tab, digest(i), 0, 1_000)
	}
	if tab.Len() != 10 || tab.Shelved() != 0 {
		t.Errorf("%d slots and %d logs, want 10 and none: the log's weight is not given back", tab.Len(), tab.Shelved())
	}
}

// TestDeadAreNotEvicted: what makes room after its time is not counted as evicted.
func TestDeadAreNotEvicted(t *testing.T) {
	tab := table.New(10)
	for i := range 5 {
		add(t, tab, digest(i), -10, 0)
	}
	growLog(t, tab, digest(100))
	if tab.Len() != 1 || tab.Evicted() != 0 {
		t.Errorf("%d slots, %d evicted, want the log alone and none", tab.Len(), tab.Evicted())
	}
}

// growLog makes a log of d and grants 400 times in it.
func growLog(t *testing.T, tab *table.Table, d table.Digest) {
	p := algorithm.NewParams(algorithm.SlidingLog, 1_000, 1_000_000, 0)
	with(t, tab, d, func(s *table.Segment) {
		s.AddLog(d, -5)
		for now := range int64(400) {
			slot := s.Find(d)
			s.Log(slot).Grant(p, now, 1)
			s.Grown(slot, now)
		}
	})
}
