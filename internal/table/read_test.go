package table_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/headgate/headgate/internal/algorithm"
	"github.com/headgate/headgate/internal/table"
)

// whole is a state that is told from a mixture of two: its numbers are one, and differ in each part from those of another.
func whole(i int) algorithm.State {
	n := int64(i) << 36 / 997
	return algorithm.State{At: n, Life: n, A: n, B: n}
}

func isWhole(s algorithm.State) bool { return s.At > 0 && s.Life == s.At && s.A == s.At && s.B == s.At }

// reads reads the slots of a table without the lock, one after the other, until the table is closed, and reports what is neither a whole
// state nor none.
func reads(t *testing.T, tab *table.Table, digests []table.Digest) {
	for i := 0; ; i++ {
		if i%100 == 0 {
			runtime.Gosched()
		}
		d := digests[i%len(digests)]
		s := tab.Segment(tab.SegmentOf(d))
		version, free := s.Version()
		if !free {
			if !s.Lock() {
				return
			}
			s.Unlock()
			continue
		}
		if slot, state, ok := s.Read(version, d); ok && (slot == nil && state != algorithm.State{} || slot != nil && !isWhole(state)) {
			t.Errorf("slot: %v, %+v", slot != nil, state)
		}
	}
}

// writes puts whole states into slots, each twice, and then removes them.
func writes(t *testing.T, tab *table.Table, digests []table.Digest) {
	for i, d := range digests {
		with(t, tab, d, func(s *table.Segment) { s.SetState(s.Add(d, 0), whole(1+i)) })
		other := digests[i/2]
		with(t, tab, other, func(s *table.Segment) { s.SetState(s.Find(other), whole(10_000+i)) })
	}
	for _, d := range digests {
		with(t, tab, d, func(s *table.Segment) { s.Remove(d) })
	}
}

// TestRead: who reads without the lock while others write, add and remove slots, and the table grows and shrinks, finds a whole state of
// the slot it asked for, or none.
func TestRead(t *testing.T) {
	tab := table.New(1_000)
	var digests []table.Digest
	for i := range 300 {
		digests = append(digests, digest(i).SetHome(digest(1+i%8)))
	}
	var reading sync.WaitGroup
	for range 3 {
		reading.Go(func() { reads(t, tab, digests) })
	}
	for range 400 {
		writes(t, tab, digests)
	}
	tab.Close()
	reading.Wait()
}

// TestReadMidway: who comes while buckets are replaced may find where the new ones are and how many the old ones were. It looks at neither.
func TestReadMidway(t *testing.T) {
	tab := table.New(1)
	d := digest(1)
	add(t, tab, d, 0, forever)
	s := tab.Segment(tab.SegmentOf(d))
	version, _ := s.Version()
	end := s.ReplaceBuckets()
	if slot, state, ok := s.Read(version, d); ok {
		t.Errorf("read %v, %+v while buckets are replaced", slot, state)
	}
	end()
	if slot, _, ok := s.Read(version, d); ok {
		t.Errorf("read %v at a version that is over", slot)
	}
	version, _ = s.Version()
	if slot, _, ok := s.Read(version, d); !ok || slot == nil {
		t.Errorf("read %v, %v afterwards", slot, ok)
	}
}

// TestLockAt: many who read a slot's state without the lock, and lock the segment only if nobody did since, lose no write of each other.
func TestLockAt(t *testing.T) {
	const workers, each = 4, 5_000
	tab := table.New(100)
	d := digest(1)
	with(t, tab, d, func(s *table.Segment) { s.SetState(s.Add(d, 0), algorithm.State{Life: 1 << 40}) })
	s := tab.Segment(tab.SegmentOf(d))
	one := func() (done bool) {
		version, free := s.Version()
		if !free {
			return false
		}
		slot, state, ok := s.Read(version, d)
		if !ok || !s.LockAt(version, forever) {
			return false
		}
		state.A++
		s.SetState(slot, state)
		s.Unlock()
		return true
	}
	var done sync.WaitGroup
	for range workers {
		done.Go(func() {
			for n := 0; n < each; {
				if one() {
					n++
				}
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

// TestLockAtInstant: who has read gets the lock only while nobody else had it, nor decided to change nothing; then the clock is to be read again.
func TestLockAtInstant(t *testing.T) {
	s := table.New(1).Segment(0)
	clock := func() int64 { return 30 }
	version, _ := s.Version()
	if !s.LockAt(version, 10) {
		t.Fatal("nobody had the lock, and nobody decided")
	}
	s.Unlock()
	if s.LockAt(version, 10) || s.Stands(version) || s.Unchanged(version) {
		t.Fatal("somebody has had the lock since")
	}
	if now := s.After(5); now != 10 {
		t.Errorf("after a change at 10 it is %d", now)
	}
	for range 2 {
		version, _ = s.Version()
		if !s.Stands(version) {
			t.Fatal("nobody had the lock")
		}
	}
	if s.LockAt(version, 20) {
		t.Fatal("somebody decided, maybe after 20")
	}
	if again, _ := s.Version(); again != version {
		t.Error("who was not to have the lock had it for a while, and got into the way of those who read")
	}
	s.Lock()
	if now := s.Instant(20, clock); now != 30 {
		t.Errorf("the next change is at %d, want 30: what the clock shows under the lock", now)
	}
	if now := s.Instant(25, nil); now != 30 {
		t.Errorf("and the one after it at %d, want 30", now)
	}
	s.Unlock()
	if version, _ = s.Version(); !s.LockAt(version, 40) {
		t.Error("nobody has decided since")
	}
}
