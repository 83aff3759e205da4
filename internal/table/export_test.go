package table

import "unsafe"

// SegmentsFor returns how many segments a table for at most max slots has, and how many slots each of them may have.
func SegmentsFor(max int) (segments, places int) { return segmentsFor(max), maxPlaces }

// Bytes returns what the table takes, without what lies on shelves.
func (t *Table) Bytes() int {
	n := t.BytesAtFirst()
	for i := range t.segments {
		n += len(t.segments[i].buckets()) * int(unsafe.Sizeof(bucket{}))
	}
	return n
}

// BytesAtFirst returns what a table takes that never held anything.
func (t *Table) BytesAtFirst() int {
	return int(unsafe.Sizeof(*t)) + len(t.segments)*int(unsafe.Sizeof(Segment{}))
}

// SetHome returns d with the search for it in the same segment as, and beginning at the same bucket as that for like.
func (d Digest) SetHome(like Digest) Digest { return Digest{Hi: d.Hi, Lo: like.Lo} }

// Shelved returns how many states and logs lie on shelves.
func (t *Table) Shelved() int {
	n := 0
	for i := range t.segments {
		if shelf := t.segments[i].shelf; shelf != nil {
			n += len(shelf.wide.all) - len(shelf.wide.free) + len(shelf.logs.all) - len(shelf.logs.free)
		}
	}
	return n
}

// Past returns what all buckets count of slots that lie further on.
func (t *Table) Past() int {
	n := 0
	for i := range t.segments {
		for _, b := range t.segments[i].buckets() {
			n += b.notes.past()
		}
	}
	return n
}

// ReplaceBuckets stops in the middle of replacing the buckets by new ones, and goes on when end is called: with the old ones.
func (s *Segment) ReplaceBuckets() (end func()) {
	s.Lock()
	bs := s.buckets()
	s.first.Store(nil)
	return func() {
		s.setBuckets(bs)
		s.Unlock()
	}
}
