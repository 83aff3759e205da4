package table

import (
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/headgate/headgate/internal/algorithm"
)

// Segment is a part of a Table under one lock: one cache line, where words have 64 bits.
type Segment struct {
	lock  lock
	last  atomic.Int64           // the latest instant of a change
	first atomic.Pointer[bucket] // of count, side by side
	count atomic.Int32
	used  int32       // slots in use
	hand  int32       // the bucket that is next for the hand
	told  atomic.Bool // somebody who changed nothing may have decided at a later instant than last
	shelf *shelf      // nil until something needs it
	table *Table
	_     uint64 // to fill the line; last, since segments may begin 8 bytes into one
}

// Lock waits for the segment, and returns false, without it, if the table is closed.
func (s *Segment) Lock() bool { return s.lock.acquire() }

// Unlock gives the segment free.
func (s *Segment) Unlock() { s.lock.release() }

// Version returns what Read and LockAt need; false if the segment is locked, or the table closed.
func (s *Segment) Version() (version uint64, free bool) {
	version = s.lock.version.Load()
	return version, version&1 == 0
}

// Read returns the slot of d, or nil, and its state, without the lock. It returns false if the segment has been locked since it had the
// version, or if the state lies on the shelf. Otherwise what it returns was so at one instant between Version and the end of Read, and it
// is so until the segment is locked: LockAt, Stands and Unchanged tell whether it still is. The slot is for that: it must not be used
// without the lock.
func (s *Segment) Read(version uint64, d Digest) (slot *Slot, state algorithm.State, ok bool) {
	first, count := s.first.Load(), s.count.Load()
	if !s.Unchanged(version) { // the two may be of different times
		return nil, state, false
	}
	if slot = buckets(unsafe.Slice(first, count)).find(d); slot != nil {
		p := slot.load()
		state = p.unpack()
	}
	return slot, state, s.Unchanged(version) && state.Life != onShelf
}

// Stands says whether the segment has not been locked since it had the version, and has whoever next calls Instant read the clock again: for
// those who have read the clock and then decided to change nothing. What comes after them is then not at an earlier instant.
func (s *Segment) Stands(version uint64) bool {
	if !s.told.Load() { // else somebody has done so, and what all read stays in their caches
		s.told.Store(true)
	}
	return s.Unchanged(version)
}

// Unchanged says whether the segment has not been locked since it had the version.
func (s *Segment) Unchanged(version uint64) bool { return s.lock.version.Load() == version }

// LockAt locks the segment, to change something at the instant now, if it has not been locked since it had the version, and the clock need
// not be read again.
func (s *Segment) LockAt(version uint64, now int64) bool {
	if s.told.Load() || !s.lock.acquireAt(version) {
		return false
	}
	if s.told.Load() { // meanwhile
		s.lock.release()
		return false
	}
	s.Advance(now)
	return true
}

// buckets returns the buckets, to who has the lock.
func (s *Segment) buckets() buckets { return unsafe.Slice(s.first.Load(), s.count.Load()) }

// setBuckets replaces the buckets.
func (s *Segment) setBuckets(bs buckets) {
	s.first.Store(unsafe.SliceData(bs))
	s.count.Store(int32(len(bs)))
}

// Find returns the slot of d, or nil.
func (s *Segment) Find(d Digest) *Slot { return s.buckets().find(d) }

// Instant returns now, which the clock showed before the segment was locked, or what it shows now if somebody has decided since then and changed
// nothing; or the instant of the latest change if that is later. It is for a clock that never steps back. All that the segment decides is
// then in the order of its instants.
func (s *Segment) Instant(now int64, clock func() int64) int64 {
	if s.told.Load() {
		s.told.Store(false)
		now = max(now, clock())
	}
	now = s.After(now)
	s.Advance(now)
	return now
}

// Advance makes now the instant of a change, unless a later one was.
func (s *Segment) Advance(now int64) {
	if s.last.Load() < now {
		s.last.Store(now)
	}
}

// After returns now, or the instant of the latest change if that is later. It needs no lock.
func (s *Segment) After(now int64) int64 { return max(now, s.last.Load()) }

// Add makes a slot for d, which has none, and frees up to a few for it at the instant now.
func (s *Segment) Add(d Digest, now int64) *Slot {
	s.sweep(now)
	s.table.weight.Add(1)
	s.lighten(nil, now)
	if n := int(s.count.Load()); s.crowded(n) {
		s.resize(n + max(1, n/8))
	}
	s.used++
	return s.buckets().place(d)
}

// crowded says whether n buckets are too few for one more slot: at most five in six are in use.
func (s *Segment) crowded(n int) bool { return 6*(int(s.used)+1) > 5*perBucket*n }

// Remove drops the slot of d, if it has one.
func (s *Segment) Remove(d Digest) {
	bs := s.buckets()
	i := d.home(len(bs))
	for range bs {
		for j := range bs[i].slots {
			if bs[i].notes.taken(j) && bs[i].slots[j].is(d) {
				s.remove(i, j)
				s.shrink()
				return
			}
		}
		if bs[i].notes.past() == 0 {
			return
		}
		i = bs.after(i)
	}
}

// remove drops the slot j of bucket i.
func (s *Segment) remove(i, j int) {
	bs := s.buckets()
	slot := &bs[i].slots[j]
	s.table.weight.Add(-weightOf(slot))
	s.unshelve(slot)
	bs.vacate(i, j)
	s.used--
}

// shrink gives memory back when a quarter of the slots, or less, are in use.
func (s *Segment) shrink() {
	if n := int(s.count.Load()); n > fewSlots && 4*int(s.used) < perBucket*n {
		s.resize(n / 2)
	}
}

// resize moves the slots into n buckets, or as many more as the allocator rounds that to. The old ones stay as they are, for who still reads there.
func (s *Segment) resize(n int) {
	to := slices.Grow(buckets(nil), n)
	to = to[:cap(to)]
	clear(to)
	from := s.buckets()
	for i := range from {
		for j := range from[i].slots {
			if from[i].notes.taken(j) {
				to.move(&from[i].slots[j])
			}
		}
	}
	s.setBuckets(to)
	s.hand = 0
}
