package table

// perBucket is what fits into two cache lines.
const perBucket = 3

// Slot is the state of one counter. It may be used while its segment is locked, until a slot is added or removed there.
type Slot struct {
	digest Digest
	state  packed
}

// bucket is a few slots. The search for a slot looks at the bucket where it begins and, where that is full, at those that follow.
// It compares whole digests, and no short tags before: to look at all of a bucket at once takes as long as to look at one line of it,
// where memory is far away, and to look first here and then there takes twice as long.
type bucket struct {
	slots [perBucket]Slot
	taken [perBucket]bool
	past  uint16 // slots further on whose search begins here or before, and so passes here
}

// home returns the bucket, of n, where the search for d begins.
func (d Digest) home(n int) int { return int(d.Lo >> 32 * uint64(n) >> 32) }

// Find returns the slot of d, or nil.
func (s *Segment) Find(d Digest) *Slot {
	n := len(s.buckets)
	i := d.home(n)
	for range n {
		b := &s.buckets[i]
		for j := range b.slots {
			if b.slots[j].digest == d && b.taken[j] {
				return &b.slots[j]
			}
		}
		if b.past == 0 {
			return nil
		}
		i = s.after(i)
	}
	return nil
}

// after returns the bucket that follows i; after the last comes the first.
func (s *Segment) after(i int) int {
	if i++; i < len(s.buckets) {
		return i
	}
	return 0
}

// place takes a free slot for d. There is one, and d has none.
func (s *Segment) place(d Digest) *Slot {
	for i := d.home(len(s.buckets)); ; i = s.after(i) {
		b := &s.buckets[i]
		for j := range b.slots {
			if !b.taken[j] {
				b.taken[j], b.slots[j] = true, Slot{digest: d}
				return &b.slots[j]
			}
		}
		b.past++
	}
}

// vacate frees the slot j of bucket i.
func (s *Segment) vacate(i, j int) {
	for k := s.buckets[i].slots[j].digest.home(len(s.buckets)); k != i; k = s.after(k) {
		s.buckets[k].past--
	}
	s.buckets[i].taken[j] = false
}
