// Package oracle is a naive model of docs/semantics.md: slow, without a thought for size, and as plain as can be, to hold real stores to.
//
// It shares no formula with package algorithm. What a key has in use is computed the long way, in big integers where a product
// could be large, and every wait is found by asking the model itself: would the request pass a microsecond later, or a week?
package oracle

import (
	"math"
	"math/big"
	"slices"
	"time"

	"github.com/headgate/headgate"
)

// Model is a store in which time is a parameter. It is not safe for concurrent use. Charges are taken to be valid.
type Model struct {
	counters map[id]counter
}

// New returns a Model in which no key was ever seen.
func New() *Model { return &Model{counters: map[id]counter{}} }

// An id names a counter: a key, and a limit by its name and algorithm or, without a name, by all of its numbers.
type id struct {
	key   string
	limit headgate.Limit
}

func idOf(c headgate.Charge) id {
	if c.Limit.Name != "" {
		return id{c.Key, headgate.Limit{Name: c.Limit.Name, Algorithm: c.Limit.Algorithm}}
	}
	return id{c.Key, c.Limit}
}

// A counter is what one key has used under one limit. It is a value: what changes it returns another. Instants are microseconds.
type counter interface {
	// moved returns the counter as a decision at now finds it: the same, unless time stepped back since its last write.
	moved(now int64) counter
	// used returns how many whole tokens of the capacity cannot be had at now, which is not before the last write.
	used(l headgate.Limit, now int64) int64
	// granted returns the counter after a grant, and refunded after a refund of tokens taken at taken, 0 = not known.
	granted(l headgate.Limit, now, n int64) counter
	refunded(l headgate.Limit, now, n, taken int64) counter
	// settled returns the counter without what it has found to be over at now.
	settled(l headgate.Limit, now int64) counter
	// written returns the instant of the last write.
	written() int64
	// over says whether nothing of the counter matters any more, by the limit under which it was written.
	over(now int64) bool
	// edges returns the instants after now at which what is in use may rise although nothing is granted, in order.
	edges(l headgate.Limit, now int64) []int64
}

func fresh(a headgate.Algorithm, now int64) counter {
	switch a {
	case headgate.TokenBucket:
		return bucket{at: now, inUse: new(big.Int), period: 1}
	case headgate.FixedWindow:
		return fixed{at: now}
	case headgate.AlignedWindow:
		return aligned{at: now}
	case headgate.SlidingWindow:
		return sliding{at: now}
	default:
		return slidingLog{}
	}
}

// at returns the counter of c as a decision at now finds it.
func (m *Model) at(c headgate.Charge, now int64) counter {
	if held, ok := m.counters[idOf(c)]; ok {
		return held.moved(now)
	}
	return fresh(c.Limit.Algorithm, now)
}

// Take decides the charges at now. Its waits are searched for from those of guess, which changes the time this takes and not the
// answer: pass the decision that is to be checked, or none.
func (m *Model) Take(now time.Time, guess headgate.Decision, charges ...headgate.Charge) headgate.Decision {
	t := now.UnixMicro()
	sums := add(charges)
	charges = slices.Clone(charges)
	allowed := true
	for i, c := range charges {
		charges[i].Cost = sums[idOf(c)]
		allowed = allowed && room(m.at(charges[i], t), charges[i], t)
	}
	states := make([]headgate.State, len(charges))
	for i, c := range charges {
		states[i] = m.state(c, t, allowed, hint(guess, i))
	}
	for _, c := range charges {
		m.keep(c, t, allowed, sums)
	}
	d := decide(states)
	d.At = time.UnixMicro(t)
	return d
}

// add returns what the charges ask of each counter.
func add(charges []headgate.Charge) map[id]int64 {
	sums := map[id]int64{}
	for _, c := range charges {
		sum := sums[idOf(c)]
		if sum > math.MaxInt64-c.Cost {
			sum = math.MaxInt64 - c.Cost
		}
		sums[idOf(c)] = sum + c.Cost
	}
	return sums
}

func room(k counter, c headgate.Charge, t int64) bool {
	return c.Cost == 0 || c.Cost <= c.Limit.Capacity()-k.used(c.Limit, t)
}

// keep writes what the request left of the counter of c: once for each counter, whatever the number of its charges.
func (m *Model) keep(c headgate.Charge, t int64, allowed bool, sums map[id]int64) {
	_, known := m.counters[idOf(c)]
	if sums[idOf(c)] == 0 || !allowed && !known { // a look, or a denial to one who was never seen
		return
	}
	k := m.at(c, t).settled(c.Limit, t)
	if allowed {
		k = k.granted(c.Limit, t, c.Cost)
	}
	m.counters[idOf(c)] = k
	sums[idOf(c)] = 0
}

// state returns the state of c, whose cost is that of all charges to its counter, in a request that was allowed or not.
func (m *Model) state(c headgate.Charge, t int64, allowed bool, guess headgate.State) headgate.State {
	k := m.at(c, t)
	s := headgate.State{Limit: c.Limit, Allowed: room(k, c, t)}
	if !s.Allowed {
		s.RetryAfter = headgate.Never
		if c.Cost <= c.Limit.Capacity() {
			s.RetryAfter = first(k.edges(c.Limit, t), t, guess.RetryAfter, func(t int64) bool { return room(k, c, t) })
		}
	}
	if allowed && c.Cost > 0 {
		k = k.granted(c.Limit, t, c.Cost)
	}
	s.Remaining = max(0, c.Limit.Capacity()-k.used(c.Limit, t))
	s.ResetAfter = last(k.edges(c.Limit, t), t, guess.ResetAfter, func(t int64) bool { return k.used(c.Limit, t) == 0 })
	return s
}

// decide joins the states: the binding one is that which denied with the longest wait, then the first, else the one with the least left.
func decide(states []headgate.State) headgate.Decision {
	var binding *headgate.State
	for i := range states {
		if s := &states[i]; !s.Allowed && (binding == nil || s.RetryAfter > binding.RetryAfter) {
			binding = s
		}
	}
	allowed := binding == nil
	for i := range states {
		if s := &states[i]; allowed && (binding == nil || s.Remaining < binding.Remaining) {
			binding = s
		}
	}
	d := headgate.Decision{Allowed: allowed, Limit: binding.Limit, Remaining: binding.Remaining}
	d.RetryAfter, d.ResetAfter = binding.RetryAfter, binding.ResetAfter
	if len(states) > 1 {
		d.States = states
	}
	return d
}

// hint is what guess says of charge i.
func hint(guess headgate.Decision, i int) headgate.State {
	if i < len(guess.States) {
		return guess.States[i]
	}
	return headgate.State{RetryAfter: guess.RetryAfter, ResetAfter: guess.ResetAfter}
}

// Refund gives back the charges at now, taken at the instant taken; the zero time = not known.
func (m *Model) Refund(now, taken time.Time, charges ...headgate.Charge) {
	when := int64(0)
	if !taken.IsZero() {
		when = taken.UnixMicro()
	}
	t, sums := now.UnixMicro(), add(charges)
	for _, c := range charges {
		n := sums[idOf(c)]
		if _, known := m.counters[idOf(c)]; known && n > 0 {
			m.counters[idOf(c)] = m.at(c, t).settled(c.Limit, t).refunded(c.Limit, t, n, when)
		}
		sums[idOf(c)] = 0
	}
}

// Reset forgets the counters of the charges.
func (m *Model) Reset(charges ...headgate.Charge) {
	for _, c := range charges {
		delete(m.counters, idOf(c))
	}
}

// Over says whether the time of the counter of c is over at now, so that a store may have freed it: should time step back, it may
// remember or not.
func (m *Model) Over(now time.Time, c headgate.Charge) bool {
	k, known := m.counters[idOf(c)]
	return known && k.over(now.UnixMicro())
}

// WrittenAfter says whether the last write to the counter of c was after now: time has stepped back since.
func (m *Model) WrittenAfter(now time.Time, c headgate.Charge) bool {
	k, known := m.counters[idOf(c)]
	return known && !k.over(k.written()) && k.written() > now.UnixMicro()
}

// OverSince says whether the time of the counter of c would be over at now, had it been found when the clock showed back.
func (m *Model) OverSince(back, now time.Time, c headgate.Charge) bool {
	k, known := m.counters[idOf(c)]
	return known && k.moved(back.UnixMicro()).over(now.UnixMicro())
}
