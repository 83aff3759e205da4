package headgate

import (
	"math/rand/v2"
	"strings"
	"sync/atomic"

	"github.com/headgate/headgate/internal/algorithm"
	"github.com/headgate/headgate/internal/table"
)

// A rule is a valid limit as a [Memory] works with it. It does not change.
type rule struct {
	limit  Limit
	params algorithm.Params
	digest table.Digest // the limit's part of a counter's digest
}

const (
	ruleBits  = 8  // rules kept, as a power of two
	ruleEvery = 64 // of so many limits that find their place taken, one takes it
)

// rules are the limits that a Memory has met: a process has few limits and many keys, and what is worked out for a limit costs as much as
// the rest of a decision. Each limit has one place, and shares it with others.
type rules [1 << ruleBits]atomic.Pointer[rule]

// known returns the rule of l if it is kept; else nil.
func (r *rules) known(l *Limit) *rule {
	if known := r.place(l).Load(); known != nil && known.limit == *l {
		return known
	}
	return nil
}

func (r *rules) place(l *Limit) *atomic.Pointer[rule] {
	const odd = 0x9e3779b97f4a7c15
	mix := uint64(l.Count)*odd ^ uint64(l.Period) ^ uint64(l.Burst)<<24 ^ uint64(l.Algorithm)<<48
	if n := len(l.Name); n > 0 {
		mix ^= uint64(l.Name[0])<<32 ^ uint64(l.Name[n-1])<<40 ^ uint64(n)<<16
	}
	return &r[mix*odd>>(64-ruleBits)]
}

// learn returns the rule of a valid limit that is not known, and may keep it.
func (m *Memory) learn(l *Limit) rule {
	id := table.Limit{Name: l.Name, Kind: algorithm.Kind(l.Algorithm)}
	if l.Name == "" {
		id.Count, id.Period, id.Burst = l.Count, int64(l.Period), l.Burst
	}
	r := rule{limit: *l, params: l.params(), digest: m.table.OfLimit(&id)}
	if place := m.rules.place(l); place.Load() == nil || rand.N(ruleEvery) == 0 {
		kept := r
		kept.limit.Name = strings.Clone(l.Name) // do not keep what the name was cut out of
		place.Store(&kept)
	}
	return r
}
