package meter

import "strings"

// A sketch finds the keys that come most often among any number of keys, in bounded memory: Space-Saving, after Metwally, Agrawal and El
// Abbadi (2005). It keeps size counters. A key without one takes over the least, and its count as a possible error. So of n keys added, every
// key that came more than n/size times has a counter, and no counter is above the truth by more than n/size.
//
// Counters of one count hang on one bucket, and the buckets on a list in order, so that adding takes a constant number of steps. It is not
// safe for concurrent use.
type sketch struct {
	size     int
	counters map[string]*counter
	least    *bucket // the end of the list; nil = empty
	most     *bucket // the other end
	added    uint64
}

type counter struct {
	key        string
	excess     uint64 // the count may be above the truth by so much
	on         *bucket
	prev, next *counter
}

type bucket struct {
	count      uint64
	first      *counter
	prev, next *bucket // of less and of more
}

func newSketch(size int) *sketch {
	return &sketch{size: size, counters: make(map[string]*counter, size)}
}

// add counts key once.
func (s *sketch) add(key string) {
	s.added++
	c := s.counters[key]
	switch {
	case c != nil:
	case len(s.counters) < s.size:
		c = &counter{key: strings.Clone(key)}
		s.counters[c.key] = c
	default:
		c = s.least.first
		delete(s.counters, c.key)
		c.key, c.excess = strings.Clone(key), s.least.count
		s.counters[c.key] = c
	}
	s.raise(c)
}

// raise moves a counter to the bucket of one more; a new one to that of one.
func (s *sketch) raise(c *counter) {
	from, count := c.on, uint64(1)
	next := s.least
	if from != nil {
		count, next = from.count+1, from.next
		if from.first == c && c.next == nil && (next == nil || next.count != count) { // alone, and nobody waits above
			from.count = count
			return
		}
	}
	if next == nil || next.count != count {
		next = s.insert(&bucket{count: count}, from, next)
	}
	if from != nil {
		s.take(c)
	}
	c.on, c.prev, c.next = next, nil, next.first
	if next.first != nil {
		next.first.prev = c
	}
	next.first = c
}

// insert puts b between its neighbours, of which there may be none.
func (s *sketch) insert(b, below, above *bucket) *bucket {
	b.prev, b.next = below, above
	if below != nil {
		below.next = b
	} else {
		s.least = b
	}
	if above != nil {
		above.prev = b
	} else {
		s.most = b
	}
	return b
}

// take takes a counter off its bucket, and the bucket off the list if it was the last one there.
func (s *sketch) take(c *counter) {
	b := c.on
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		b.first = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	}
	if b.first != nil {
		return
	}
	if b.prev != nil {
		b.prev.next = b.next
	} else {
		s.least = b.next
	}
	if b.next != nil {
		b.next.prev = b.prev
	} else {
		s.most = b.prev
	}
}

// floor is the most that a key without a counter may have come.
func (s *sketch) floor() uint64 {
	if len(s.counters) < s.size {
		return 0
	}
	return s.least.count
}

// each calls visit with every counter, those of most first.
func (s *sketch) each(visit func(key string, count, excess uint64)) {
	for b := s.most; b != nil; b = b.prev {
		for c := b.first; c != nil; c = c.next {
			visit(c.key, b.count, c.excess)
		}
	}
}
