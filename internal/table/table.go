// Package table is what lies under headgate.Memory: the state of each key and limit in a flat table, bounded in number.
//
// A counter is known by a [Digest] of 128 bits alone; the key itself is not kept. Its state lies beside the digest, 40 bytes in all, in
// arrays without pointers, so that the garbage collector has nothing to follow however many counters there are. The table is made of
// segments, each with a lock and a hash table of its own that grows by an eighth, or by what the allocator rounds that to: a table takes
// about 55 bytes a counter, and less than 64 from when it is a twentieth full. A known counter is found with one look, most often, at
// memory that is in no cache: at two lines of it side by side.
//
// Who changes nothing needs no lock: it reads a slot and looks whether the segment was locked meanwhile, see [Segment.Read]. So what one
// processor reads again and again stays in its cache, and those who are denied do not wait for each other. Who does change a state can read
// it so too, and lock the segment only to write, if nobody did before, see [Segment.LockAt].
//
// Nothing here ever looks at the whole table: a segment holds some hundreds or thousands of slots and grows on its own, in some
// microseconds or, in memory that is fresh from the system, some hundreds; a state that no longer matters is found by a hand that goes
// round its segment, a few buckets for each counter that is added; and when the table is full the hand also picks what to evict. There is
// no goroutine.
package table

import "sync/atomic"

const (
	perSegment   = 512     // slots of a segment of a full table, at most, until there are manySegments
	manySegments = 1 << 12 // segments of which two callers rarely want the same; a garbage collection takes some 2 ms for as many
	perLarge     = 1 << 12 // slots of a segment from then on, until there are maxSegments: they are moved in less than 1 ms
	fewSlots     = 64      // slots for which a segment of a small table is worth having
	fewSegments  = 64      // segments that a small table has at most
	maxSegments  = 1 << 16 // a power of two
	maxPlaces    = 1 << 14 // slots of one segment
)

// MaxSlots is the most slots that a table holds, whatever New is told.
const MaxSlots = maxSegments * maxPlaces

// Table is a bounded set of slots. Its methods are safe for concurrent use; those of a Segment need its lock, unless they say otherwise.
type Table struct {
	hash     hash
	segments []Segment // a power of two of them
	max      int64
	_        [64]byte     // what every decision reads is not in a line with what many of them write
	weight   atomic.Int64 // of all slots: one each, and one more for every logEntries entries of a log
	evicted  atomic.Int64
}

// New returns an empty table for at most max slots, max above 0.
func New(max int) *Table {
	max = min(max, MaxSlots)
	t := &Table{hash: newHash(), segments: make([]Segment, segmentsFor(max)), max: int64(max)}
	for i := range t.segments {
		t.segments[i].table = t
	}
	return t
}

// segmentsFor returns a power of two: as many segments as hold max slots between them, more where they would be few.
func segmentsFor(max int) int {
	n := 1
	for n < maxSegments && (n*mostIn(n) < max || n < fewSegments && 2*n*fewSlots <= max) {
		n *= 2
	}
	return n
}

// mostIn returns how many slots each of n segments of a full table may have.
func mostIn(n int) int {
	if n < manySegments {
		return perSegment
	}
	return perLarge
}

// SegmentOf returns the number of the segment that d belongs to. Who locks several does so in the order of their numbers.
func (t *Table) SegmentOf(d Digest) int { return int(d.segment() & uint64(len(t.segments)-1)) }

// Segment returns segment i.
func (t *Table) Segment(i int) *Segment { return &t.segments[i] }

// Len returns the number of slots, those included that no longer matter and are yet to be found.
func (t *Table) Len() int {
	n := 0
	for i := range t.segments {
		s := &t.segments[i]
		if s.lock.acquire() {
			n += int(s.used)
			s.lock.release()
		}
	}
	return n
}

// Evicted returns how many slots were dropped while they still mattered, because the table was full.
func (t *Table) Evicted() int64 { return t.evicted.Load() }

// Close drops everything, for good: after it no segment can be locked.
func (t *Table) Close() {
	for i := range t.segments {
		s := &t.segments[i]
		if s.lock.acquire() {
			s.setBuckets(nil)
			s.shelf, s.used = nil, 0
			s.lock.shut()
		}
	}
}
