// Package table is what lies under headgate.Memory: the state of each key and limit, in shards with a lock each, bounded in number.
//
// Nothing here ever looks at the whole table: a state that no longer matters is found by a hand that goes round its shard, a few
// places for each key that is added, and when the table is full the hand also picks what to evict. There is no goroutine.
package table

import (
	"hash/maphash"
	"math/bits"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/headgate/headgate/internal/algorithm"
)

// Key names a counter. For a limit with a name the numbers are zero: the name identifies it. For one without, they do.
type Key struct {
	Owner  string // who pays
	Limit  string
	Kind   algorithm.Kind
	Count  int64
	Period int64
	Burst  int64
}

// Slot is the state of one counter. It may be used while its shard is locked.
type Slot struct {
	State algorithm.State
	Log   *algorithm.Log // of a SlidingLog; nil for the others

	key    Key
	place  int // in Shard.slots
	weight int64
}

// dead returns the instant from which the slot no longer matters.
func (s *Slot) dead() int64 {
	if s.Log != nil {
		return s.Log.Dead()
	}
	return s.State.At + s.State.Life
}

// Table is a bounded set of slots. Its methods are safe for concurrent use; those of a Shard need its lock.
type Table struct {
	seed    maphash.Seed
	shards  []Shard
	max     int64
	weight  atomic.Int64 // of all slots: one each, and one more for every logEntries entries of a log
	evicted atomic.Int64
}

// Shard is a part of a Table under one lock.
type Shard struct {
	sync.Mutex
	table *Table
	index map[Key]*Slot
	slots []*Slot
	hand  int
	_     [64]byte // keeps two shards' locks off one cache line
}

const (
	logEntries = 4   // log entries that weigh as much as a slot
	perShard   = 64  // a shard is worth having from so many slots on
	maxShards  = 256 // a power of two
	handStep   = 4   // places the hand looks at for each slot added
	evictStep  = 8   // further places it looks at to find one to evict
)

// New returns an empty table for at most max slots, max above 0.
func New(max int) *Table {
	n := min(maxShards, 1<<(bits.Len(uint(max/perShard)+1)-1))
	t := &Table{seed: maphash.MakeSeed(), shards: make([]Shard, n), max: int64(max)}
	for i := range t.shards {
		t.shards[i].table, t.shards[i].index = t, make(map[Key]*Slot)
	}
	return t
}

// ShardOf returns the number of the shard that k belongs to.
func (t *Table) ShardOf(k *Key) int {
	return int(maphash.String(t.seed, k.Owner) & uint64(len(t.shards)-1))
}

// Shard returns shard i.
func (t *Table) Shard(i int) *Shard { return &t.shards[i] }

// Len returns the number of slots, those included that no longer matter and are yet to be found.
func (t *Table) Len() int {
	n := 0
	for i := range t.shards {
		t.shards[i].Lock()
		n += len(t.shards[i].slots)
		t.shards[i].Unlock()
	}
	return n
}

// Evicted returns how many slots were dropped while they still mattered, because the table was full.
func (t *Table) Evicted() int64 { return t.evicted.Load() }

// Clear drops everything.
func (t *Table) Clear() {
	for i := range t.shards {
		s := &t.shards[i]
		s.Lock()
		for len(s.slots) > 0 {
			s.remove(s.slots[len(s.slots)-1])
		}
		s.index = make(map[Key]*Slot)
		s.Unlock()
	}
}

// Find returns the slot of k, or nil.
func (s *Shard) Find(k *Key) *Slot { return s.index[*k] }

// Add makes a slot for k, which has none, and frees up to a few places for it at the instant now.
func (s *Shard) Add(k *Key, now int64) *Slot {
	s.sweep(now)
	slot := &Slot{key: *k, place: len(s.slots), weight: 1}
	slot.key.Owner = strings.Clone(k.Owner) // do not keep what the key was cut out of
	slot.key.Limit = strings.Clone(k.Limit)
	if k.Kind == algorithm.SlidingLog {
		slot.Log = new(algorithm.Log)
	}
	s.index[slot.key] = slot
	s.slots = append(s.slots, slot)
	s.grow(slot, 0, 1, now)
	return slot
}

// Grown accounts for what the log of slot has grown to.
func (s *Shard) Grown(slot *Slot, now int64) {
	s.grow(slot, slot.weight, 1+int64(slot.Log.Len()/logEntries), now)
}

// Remove drops the slot.
func (s *Shard) Remove(slot *Slot) { s.remove(slot) }

// grow books the new weight of keep and evicts others while the table is too heavy, a bounded number of them.
func (s *Shard) grow(keep *Slot, from, to, now int64) {
	keep.weight = to
	total := s.table.weight.Add(to - from)
	for i := 0; total > s.table.max && i < evictStep && len(s.slots) > 1; i++ {
		s.evict(keep, now)
		total = s.table.weight.Load()
	}
}

// sweep drops the dead among the next places of the hand.
func (s *Shard) sweep(now int64) {
	for range min(handStep, len(s.slots)) {
		if slot := s.next(); slot.dead() <= now {
			s.remove(slot)
		}
	}
}

// evict drops, among the next places, the slot that is first to no longer matter, but never keep.
func (s *Shard) evict(keep *Slot, now int64) {
	var victim *Slot
	for range min(evictStep, len(s.slots)) {
		if slot := s.next(); slot != keep && (victim == nil || slot.dead() < victim.dead()) {
			victim = slot
		}
	}
	if victim == nil {
		return
	}
	if victim.dead() > now {
		s.table.evicted.Add(1)
	}
	s.remove(victim)
}

// next moves the hand on and returns the slot it stood at; there is one.
func (s *Shard) next() *Slot {
	if s.hand >= len(s.slots) {
		s.hand = 0
	}
	s.hand++
	return s.slots[s.hand-1]
}

// remove fills the place of slot with the last one.
func (s *Shard) remove(slot *Slot) {
	last := len(s.slots) - 1
	s.slots[slot.place] = s.slots[last]
	s.slots[slot.place].place = slot.place
	s.slots[last] = nil
	s.slots = s.slots[:last]
	delete(s.index, slot.key)
	s.table.weight.Add(-slot.weight)
}
