package table

import "slices"

// Segment is a part of a Table under one lock, in one cache line.
type Segment struct {
	lock    lock
	closed  bool
	used    int32 // slots in use
	hand    int32 // the bucket that is next for the hand
	last    int64 // the latest instant of a decision, for Instant
	buckets []bucket
	shelf   *shelf // nil until something needs it
	table   *Table
}

// Lock waits for the segment, and returns false, without it, if the table is closed.
func (s *Segment) Lock() bool {
	s.lock.acquire()
	if s.closed {
		s.lock.release()
		return false
	}
	return true
}

// Unlock gives the segment free.
func (s *Segment) Unlock() { s.lock.release() }

// Instant returns now, or the instant of the latest decision if that is later: for a clock that never steps back, but was read before the
// segment was locked. All that the segment decides is then in the order of its instants.
func (s *Segment) Instant(now int64) int64 {
	s.last = max(s.last, now)
	return s.last
}

// Add makes a slot for d, which has none, and frees up to a few for it at the instant now.
func (s *Segment) Add(d Digest, now int64) *Slot {
	s.sweep(now)
	s.table.weight.Add(1)
	s.lighten(nil, now)
	if n := len(s.buckets); s.crowded(n) {
		s.resize(n + max(1, n/8))
	}
	s.used++
	return s.place(d)
}

// crowded says whether n buckets are too few for one more slot: at most five in six are in use.
func (s *Segment) crowded(n int) bool { return 6*(int(s.used)+1) > 5*perBucket*n }

// Remove drops the slot of d, if it has one.
func (s *Segment) Remove(d Digest) {
	n := len(s.buckets)
	i := d.home(n)
	for range n {
		for j := range s.buckets[i].taken {
			if s.buckets[i].taken[j] && s.buckets[i].slots[j].digest == d {
				s.remove(i, j)
				s.shrink()
				return
			}
		}
		i = s.after(i)
	}
}

// remove drops the slot j of bucket i.
func (s *Segment) remove(i, j int) {
	slot := &s.buckets[i].slots[j]
	s.table.weight.Add(-weightOf(slot))
	s.unshelve(slot)
	s.vacate(i, j)
	s.used--
}

// shrink gives memory back when a quarter of the slots, or less, are in use.
func (s *Segment) shrink() {
	if n := len(s.buckets); n > fewSlots && 4*int(s.used) < perBucket*n {
		s.resize(n / 2)
	}
}

// resize moves the slots into n buckets, or as many more as the allocator rounds that to.
func (s *Segment) resize(n int) {
	old := s.buckets
	s.buckets = slices.Grow([]bucket(nil), n)
	s.buckets = s.buckets[:cap(s.buckets)]
	clear(s.buckets)
	for i := range old {
		for j := range old[i].taken {
			if old[i].taken[j] {
				*s.place(old[i].slots[j].digest) = old[i].slots[j]
			}
		}
	}
	s.hand = 0
}
