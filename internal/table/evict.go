package table

const (
	sweepBuckets = 2 // buckets that the hand looks at for each slot added
	evictBuckets = 4 // further buckets that it looks at to find a slot to evict
	evictSlots   = 8 // most slots evicted at once
)

// sweep drops the dead in the next buckets of the hand.
func (s *Segment) sweep(now int64) {
	bs := s.buckets()
	for range min(sweepBuckets, len(bs)) {
		i := s.next()
		for j := range bs[i].slots {
			if bs[i].notes.taken(j) && s.dead(&bs[i].slots[j]) <= now {
				s.remove(i, j)
			}
		}
	}
	s.shrink()
}

// lighten evicts, while the table is too heavy or the segment full, a bounded number of slots, but never keep, which may be nil.
func (s *Segment) lighten(keep *Slot, now int64) {
	others := int(s.used)
	if keep != nil {
		others--
	}
	for range min(evictSlots, others) {
		if s.table.weight.Load() <= s.table.max && s.used < maxPlaces {
			return
		}
		s.evict(keep, now)
	}
}

// evict drops, of the slots in the next buckets that hold any, the one that is first to no longer matter, but never keep. There is another.
func (s *Segment) evict(keep *Slot, now int64) {
	var row, column int
	victim := int64(0)
	bs := s.buckets()
	for looked, found := 0, false; looked < evictBuckets || !found; looked++ {
		i := s.next()
		for j := range bs[i].slots {
			slot := &bs[i].slots[j]
			if !bs[i].notes.taken(j) || slot == keep {
				continue
			}
			if dead := s.dead(slot); !found || dead < victim {
				row, column, victim, found = i, j, dead, true
			}
		}
	}
	if victim > now {
		s.table.evicted.Add(1)
	}
	s.remove(row, column)
}

// next moves the hand on and returns the bucket it stood at; there is one.
func (s *Segment) next() int {
	i := int(s.hand)
	s.hand = int32(s.buckets().after(i))
	return i
}
