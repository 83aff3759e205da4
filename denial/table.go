package denial

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/headgate/headgate"
)

// ways is the number of entries in a stripe.
const ways = 4

// A table holds entries by the counter that they are about. Whoever looks takes no lock.
type table struct {
	seed    maphash.Seed // of this table, so that nobody can choose keys that meet
	stripes []stripe     // a power of two
}

// A stripe holds the entries of counters whose hashes meet. What is written at each answer lies apart from what all read.
type stripe struct {
	slots [ways]atomic.Pointer[entry] // written with mu; at most one for a counter
	// version counts the changes to any counter of the stripe. It rises with mu held.
	version atomic.Uint64
	mu      sync.Mutex
	_       [64]byte
	saved   atomic.Int64 // decisions made here
	evicted atomic.Int64 // entries that made room before they ended
	_       [48]byte
}

func newTable(keys int) table {
	stripes := 1
	if n := (keys + ways - 1) / ways; n > 1 {
		stripes = 1 << bits.Len(uint(n-1))
	}
	return table{seed: maphash.MakeSeed(), stripes: make([]stripe, stripes)}
}

// hash is the same for charges of one counter.
func (t *table) hash(c *headgate.Charge) uint64 {
	h := bits.RotateLeft64(maphash.String(t.seed, c.Key), 19) + uint64(c.Limit.Algorithm)
	if c.Limit.Name != "" {
		return h ^ maphash.String(t.seed, c.Limit.Name)
	}
	const odd = 0x9e3779b97f4a7c15
	return h ^ ((uint64(c.Limit.Count)*odd+uint64(c.Limit.Period))*odd+uint64(c.Limit.Burst))*odd
}

func (t *table) stripe(hash uint64) *stripe { return &t.stripes[hash&uint64(len(t.stripes)-1)] }

// find returns the entry about the counter of c; nil if there is none.
func (s *stripe) find(hash uint64, c *headgate.Charge) *entry {
	for i := range s.slots {
		if e := s.slots[i].Load(); e != nil && e.hash == hash && e.of(c) {
			return e
		}
	}
	return nil
}

// put keeps e, unless a counter of the stripe has changed since its version was what it is given as. It takes the place of what is
// known about the counter, or of the entry that ends first.
func (s *stripe) put(e *entry, version uint64) {
	c := headgate.Charge{Key: e.key, Limit: e.limit}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.version.Load() != version {
		return
	}
	victim := &s.slots[0]
	for i := range s.slots {
		slot := &s.slots[i]
		old := slot.Load()
		if old != nil && old.hash == e.hash && old.of(&c) {
			slot.Store(e)
			return
		}
		if v := victim.Load(); v != nil && (old == nil || old.sent+old.usable < v.sent+v.usable) {
			victim = slot
		}
	}
	if v := victim.Load(); v != nil && v.sent+v.usable > e.sent {
		s.evicted.Add(1)
	}
	victim.Store(e)
}

// changed forgets the counter of c, and whatever is under way about it.
func (s *stripe) changed(hash uint64, c *headgate.Charge) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version.Add(1)
	for i := range s.slots {
		if e := s.slots[i].Load(); e != nil && e.hash == hash && e.of(c) {
			s.slots[i].Store(nil)
		}
	}
}
