package meter

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Bounds of a TopKeys.
const (
	topSize   = 512             // counters of each sketch
	topWindow = 5 * time.Minute // after which a new sketch begins
	maxTenant = 256             // bytes of a name that are kept
)

// TopKeys knows which tenants are allowed and denied most, over the last five to ten minutes. It holds a bounded number of names, however
// many there are. It is safe for concurrent use.
type TopKeys struct {
	mu      sync.Mutex
	running span
	before  span // the one before; zero at the start
}

// A span is one window.
type span struct {
	since           time.Time
	allowed, denied *sketch
}

// A Top is one tenant's part.
type Top struct {
	Tenant string `json:"tenant"`
	Count  uint64 `json:"count"`     // decisions, at most
	Excess uint64 `json:"max_error"` // by which Count may be too high
}

// A Tops is the answer of a TopKeys.
type Tops struct {
	Since   time.Time `json:"since"` // what was decided before is not in it
	Allowed []Top     `json:"allowed"`
	Denied  []Top     `json:"denied"`
}

// NewTopKeys returns a TopKeys that has seen nothing.
func NewTopKeys() *TopKeys { return &TopKeys{} }

// Add counts a decision for tenant at now.
func (t *TopKeys) Add(now time.Time, tenant string, allowed bool) {
	if len(tenant) > maxTenant {
		tenant = tenant[:maxTenant]
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn(now)
	if allowed {
		t.running.allowed.add(tenant)
	} else {
		t.running.denied.add(tenant)
	}
}

// turn begins a new window if the time of the running one is over; t.mu is held.
func (t *TopKeys) turn(now time.Time) {
	age := now.Sub(t.running.since)
	if t.running.allowed != nil && age < topWindow {
		return
	}
	t.before = t.running
	if age >= 2*topWindow {
		t.before = span{}
	}
	t.running = span{since: now, allowed: newSketch(topSize), denied: newSketch(topSize)}
}

// Most returns up to n tenants of each kind at now, those with most first.
func (t *TopKeys) Most(now time.Time, n int) Tops {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn(now)
	out := Tops{Since: t.running.since}
	if t.before.allowed != nil {
		out.Since = t.before.since
	}
	out.Allowed, out.Denied = merge(n, t.running.allowed, t.before.allowed), merge(n, t.running.denied, t.before.denied)
	return out
}

// merge adds the counts of two sketches, of which the second may be nil. A key that one of them does not know may have come there as often as
// its least counter says.
func merge(n int, a, b *sketch) []Top {
	if b == nil {
		b = newSketch(1)
	}
	list := make([]Top, 0, len(a.counters)+len(b.counters))
	a.each(func(key string, count, excess uint64) {
		other, more := b.floor(), b.floor()
		if c := b.counters[key]; c != nil {
			other, more = c.on.count, c.excess
		}
		list = append(list, Top{key, count + other, excess + more})
	})
	b.each(func(key string, count, excess uint64) {
		if a.counters[key] == nil {
			list = append(list, Top{key, count + a.floor(), excess + a.floor()})
		}
	})
	slices.SortFunc(list, func(x, y Top) int { return cmp.Or(cmp.Compare(y.Count, x.Count), cmp.Compare(x.Tenant, y.Tenant)) })
	return list[:min(n, len(list))]
}
