package httplimit

import (
	"math/rand/v2"
	"strings"
	"sync/atomic"

	"github.com/headgate/headgate"
)

const (
	descriptionBits  = 6  // descriptions kept, as a power of two
	descriptionEvery = 64 // of so many lists that find their place taken, one takes it
)

// descriptions keeps the policies of lists of limits that decisions were about: a service has few such lists and many requests, and to write
// the policies costs more than the rest of the fields. Each list has one place, and shares it with others. Safe for concurrent use.
type descriptions struct {
	none   policies // of a decision that says nothing of limits
	places [1 << descriptionBits]atomic.Pointer[policies]
}

// of returns the policies of the limits that d is about.
func (k *descriptions) of(d *headgate.Decision) *policies {
	place := k.place(d)
	if kept := place.Load(); kept != nil && kept.cover(d) {
		return kept
	}
	p := describe(appendLimits(make([]headgate.Limit, 0, max(1, len(d.States))), d))
	if place.Load() == nil || rand.N(descriptionEvery) == 0 {
		for i := range p.limits {
			p.limits[i].Name = strings.Clone(p.limits[i].Name) // do not keep what the name was cut out of
		}
		place.Store(p)
	}
	return p
}

func (k *descriptions) place(d *headgate.Decision) *atomic.Pointer[policies] {
	const odd = 0x9e3779b97f4a7c15
	mix := uint64(0)
	for i := range d.States {
		mix = (mix ^ scatter(&d.States[i].Limit)) * odd
	}
	if len(d.States) == 0 {
		mix = scatter(&d.Limit) * odd
	}
	return &k.places[mix*odd>>(64-descriptionBits)]
}

// scatter returns a number that few other limits have.
func scatter(l *headgate.Limit) uint64 {
	const odd = 0xbf58476d1ce4e5b9
	mix := uint64(l.Count)*odd ^ uint64(l.Period) ^ uint64(l.Burst)<<24 ^ uint64(l.Algorithm)<<48
	if n := len(l.Name); n > 0 {
		mix ^= uint64(l.Name[0])<<32 ^ uint64(l.Name[n-1])<<40 ^ uint64(n)<<16
	}
	return mix
}
