package table

import "unsafe"

// Bytes returns what the table takes, without what lies on shelves.
func (t *Table) Bytes() int {
	n := t.BytesAtFirst()
	for i := range t.segments {
		n += cap(t.segments[i].buckets) * int(unsafe.Sizeof(bucket{}))
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
		for j := range t.segments[i].buckets {
			n += int(t.segments[i].buckets[j].past)
		}
	}
	return n
}
