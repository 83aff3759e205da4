package table_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/headgate/headgate/internal/algorithm"
	"github.com/headgate/headgate/internal/table"
)

func key(i int) table.Key { return table.Key{Owner: fmt.Sprint("key", i), Limit: "plan"} }

// add makes a slot for k, that matters until the instant dead.
func add(t *table.Table, k table.Key, now, dead int64) {
	s := t.Shard(t.ShardOf(&k))
	s.Lock()
	defer s.Unlock()
	s.Add(&k, now).State = algorithm.State{At: now, Life: dead - now, A: 1}
}

func holds(t *table.Table, k table.Key) bool {
	s := t.Shard(t.ShardOf(&k))
	s.Lock()
	defer s.Unlock()
	return s.Find(&k) != nil
}

// TestKeys: every part of a key tells it from others.
func TestKeys(t *testing.T) {
	base := table.Key{Owner: "a", Limit: "b", Kind: algorithm.FixedWindow, Count: 1, Period: 2, Burst: 3}
	keys := []table.Key{base, base, base, base, base, base, base}
	keys[1].Owner, keys[2].Limit, keys[3].Kind, keys[4].Count, keys[5].Period, keys[6].Burst = "ab", "", algorithm.AlignedWindow, 2, 3, 0
	tab := table.New(100)
	for i, k := range keys {
		if holds(tab, k) {
			t.Errorf("key %d is taken for an earlier one", i)
		}
		add(tab, k, 0, 10)
	}
	for i, k := range keys {
		if !holds(tab, k) {
			t.Errorf("key %d is not found", i)
		}
	}
	if tab.Len() != len(keys) {
		t.Errorf("%d slots, want %d", tab.Len(), len(keys))
	}
}

func TestRemoveAndClear(t *testing.T) {
	tab := table.New(1_000)
	for i := range 100 {
		add(tab, key(i), 0, 10)
	}
	for i := 0; i < 100; i += 2 {
		k := key(i)
		s := tab.Shard(tab.ShardOf(&k))
		s.Lock()
		s.Remove(s.Find(&k))
		s.Unlock()
	}
	for i := range 100 {
		if holds(tab, key(i)) != (i%2 == 1) {
			t.Errorf("key %d is held: %v", i, i%2 == 0)
		}
	}
	tab.Clear()
	if tab.Len() != 0 || holds(tab, key(1)) {
		t.Errorf("%d slots after Clear", tab.Len())
	}
	add(tab, key(1), 0, 10)
	if !holds(tab, key(1)) || tab.Evicted() != 0 {
		t.Error("a cleared table does not serve, or evicts")
	}
}

// TestFullTable: at its bound a table takes each new slot for an old one, keeps the new one, and counts what it dropped before its time.
func TestFullTable(t *testing.T) {
	for _, most := range []int{1, 2, 10, 64, 1_000} {
		tab := table.New(most)
		for i := range 5 * most {
			add(tab, key(i), int64(i), int64(i)+1_000_000)
			if !holds(tab, key(i)) {
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
		add(tab, key(i), 0, 100)
	}
	add(tab, key(1_000), 0, 101)
	for i := 2_000; i < 8_000; i++ {
		before := tab.Len()
		add(tab, key(i), 100, 200)
		if gone := before + 1 - tab.Len(); gone < 0 || gone > 4 {
			t.Fatalf("one slot came and %d went", gone)
		}
	}
	for i := range 1_000 {
		if holds(tab, key(i)) {
			t.Errorf("slot %d is still there, many steps later", i)
		}
	}
	if !holds(tab, key(1_000)) || tab.Evicted() != 0 {
		t.Errorf("what matters was dropped, or %d counted as evicted", tab.Evicted())
	}
}

// TestLogsWeigh: what a log holds counts, and a log that grows does not evict itself.
func TestLogsWeigh(t *testing.T) {
	tab := table.New(10)
	p := algorithm.NewParams(algorithm.SlidingLog, 1_000, 1_000_000, 0)
	k := table.Key{Owner: "log", Kind: algorithm.SlidingLog}
	for i := range 5 {
		add(tab, key(i), 0, 1_000)
	}
	s := tab.Shard(tab.ShardOf(&k))
	s.Lock()
	slot := s.Add(&k, 0)
	for now := range int64(400) {
		slot.Log.Grant(p, now, 1)
		s.Grown(slot, now)
	}
	s.Unlock()
	if !holds(tab, k) || tab.Len() != 1 || tab.Evicted() != 5 {
		t.Errorf("%d slots, %d evicted, want the log alone", tab.Len(), tab.Evicted())
	}
	s.Lock()
	s.Remove(slot)
	s.Unlock()
	for i := range 10 {
		add(tab, key(i), 0, 1_000)
	}
	if tab.Len() != 10 {
		t.Errorf("%d slots, want 10: the log's weight is not given back", tab.Len())
	}
}

// TestParallel is for the race detector.
func TestParallel(t *testing.T) {
	tab := table.New(500)
	var done sync.WaitGroup
	for worker := range 8 {
		done.Go(func() {
			for i := range 500 {
				add(tab, key(worker*500+i), int64(i), int64(i)+50)
				holds(tab, key(i))
			}
		})
	}
	done.Wait()
	if n := tab.Len(); n > 500+64 {
		t.Errorf("%d slots, want about 500", n)
	}
}
