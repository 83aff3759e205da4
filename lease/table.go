package lease

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/headgate/headgate"
)

// shards is the number of locks. An account lies under that of its owner.
const shards = 64

// sample is how many accounts are looked at for one that gives way.
const sample = 8

// A table holds the accounts.
type table struct {
	seed maphash.Seed
	list [shards]shard
}

// A shard is a part of the accounts, with its lock.
type shard struct {
	mu       sync.Mutex
	accounts map[key]*account
	room     int
	leaving  []parcel    // of accounts that gave way
	away     map[key]int // parcels under way
	arrived  sync.Cond   // one has come to an end
	resets   uint64
	counts   Stats
}

func newTable(maxKeys int) *table {
	t := &table{seed: maphash.MakeSeed()}
	for i := range t.list {
		t.list[i].accounts, t.list[i].away = make(map[key]*account), make(map[key]int)
		t.list[i].arrived.L = &t.list[i].mu
		t.list[i].room = (maxKeys + shards - 1) / shards
	}
	return t
}

func (t *table) shard(k key) *shard { return &t.list[maphash.String(t.seed, k.owner)%shards] }

// find returns the account of k, without the blocks whose time is over; nil = there is none. The shard is locked.
func (s *shard) find(k key, now time.Time) *account {
	a := s.accounts[k]
	if a != nil && len(a.blocks) > 0 && !a.blocks[0].alive(now) {
		s.counts.Stranded += a.expire(now)
	}
	return a
}

// open returns the account of k for charges under l; nil = there is no room for it. Blocks that were taken under other numbers are
// dropped. The shard is locked.
func (s *shard) open(k key, l headgate.Limit, now time.Time) *account {
	a := s.find(k, now)
	switch {
	case a == nil && len(s.accounts) >= s.room && !s.evict():
		return nil
	case a == nil:
		a = &account{key: k, limit: l}
		s.accounts[k] = a
	case a.limit != l:
		s.counts.Stranded += a.drop()
		a.limit = l
	}
	a.used = now
	return a
}

// evict makes room: of a few accounts, the one that was asked for the longest ago goes. It returns false if something is under way for
// each of them.
func (s *shard) evict() bool {
	var oldest *account
	seen := 0
	for _, a := range s.accounts {
		if !a.pinned() && (oldest == nil || a.used.Before(oldest.used)) {
			oldest = a
		}
		if seen++; seen == sample {
			break
		}
	}
	if oldest == nil {
		return false
	}
	s.leaving = oldest.pack(s.leaving, s.resets)
	delete(s.accounts, oldest.key)
	return true
}
