package table

import (
	"math/bits"
	"sync/atomic"
)

// perBucket is what fits into two cache lines.
const perBucket = 3

// Slot is the state of one counter. It may be used while its segment is locked, until a slot is added or removed there; Read says how else.
type Slot struct {
	digest Digest
	state  packed
}

// bucket is a few slots. The search for a slot looks at the bucket where it begins and, where that is full, at those that follow.
// It compares whole digests, and no short tags before: to look at all of a bucket at once takes as long as to look at one line of it,
// where memory is far away, and to look first here and then there takes twice as long.
type bucket struct {
	slots [perBucket]Slot
	notes notes
}

// notes say which slots of a bucket are taken, in a bit for each, and above them how many slots lie further on whose search begins
// here or before, and so passes here.
type notes uint64

const (
	onePast  notes = 1 << perBucket
	allTaken       = onePast - 1
)

func (n notes) taken(j int) bool { return n>>j&1 != 0 }
func (n notes) full() bool       { return n&allTaken == allTaken }
func (n notes) past() int        { return int(n >> perBucket) }

// buckets are what a segment has. Its holder alone writes to them, but others may read at the same time, see Segment.Read: so what they read
// is written, and what the holder may be writing is read, a word at a time by store and load.
type buckets []bucket

func load(word *uint64) uint64     { return atomic.LoadUint64(word) }
func store(word *uint64, v uint64) { atomic.StoreUint64(word, v) }

func (b *bucket) load() notes   { return notes(load((*uint64)(&b.notes))) }
func (b *bucket) note(to notes) { store((*uint64)(&b.notes), uint64(to)) }

// is says whether the slot, if it is taken, is that of d.
func (slot *Slot) is(d Digest) bool {
	return load(&slot.digest.Hi) == d.Hi && load(&slot.digest.Lo) == d.Lo
}

// home returns the bucket, of n, where the search for d begins.
func (d Digest) home(n int) int { return int(d.Lo >> 32 * uint64(n) >> 32) }

// find returns the slot of d, or nil.
func (bs buckets) find(d Digest) *Slot {
	i := d.home(len(bs))
	for range bs {
		b := &bs[i]
		notes := b.load()
		for j := range b.slots {
			if b.slots[j].is(d) && notes.taken(j) {
				return &b.slots[j]
			}
		}
		if notes.past() == 0 {
			return nil
		}
		i = bs.after(i)
	}
	return nil
}

// after returns the bucket that follows i; after the last comes the first.
func (bs buckets) after(i int) int {
	if i++; i < len(bs) {
		return i
	}
	return 0
}

// place takes a free slot for d. There is one, and d has none.
func (bs buckets) place(d Digest) *Slot {
	for i := d.home(len(bs)); ; i = bs.after(i) {
		b := &bs[i]
		if b.notes.full() {
			b.note(b.notes + onePast)
			continue
		}
		j := b.notes.free()
		slot := &b.slots[j]
		store(&slot.digest.Hi, d.Hi)
		store(&slot.digest.Lo, d.Lo)
		slot.set(packed{})
		b.note(b.notes | 1<<j)
		return slot
	}
}

// move is place for a slot that comes from elsewhere, and buckets that nobody else knows yet.
func (bs buckets) move(slot *Slot) {
	for i := slot.digest.home(len(bs)); ; i = bs.after(i) {
		b := &bs[i]
		if b.notes.full() {
			b.notes += onePast
			continue
		}
		j := b.notes.free()
		b.slots[j] = *slot
		b.notes |= 1 << j
		return
	}
}

// free returns a slot that is not taken; there is one.
func (n notes) free() int { return bits.TrailingZeros64(^uint64(n)) }

// vacate frees the slot j of bucket i.
func (bs buckets) vacate(i, j int) {
	for k := bs[i].slots[j].digest.home(len(bs)); k != i; k = bs.after(k) {
		bs[k].note(bs[k].notes - onePast)
	}
	bs[i].note(bs[i].notes &^ (1 << j))
}
