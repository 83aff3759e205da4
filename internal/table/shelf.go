package table

import "github.com/headgate/headgate/internal/algorithm"

// logEntries is how many entries of a log weigh as much as a slot.
const logEntries = 4

// shelf holds what does not fit into the slots of a segment.
type shelf struct {
	wide pile[algorithm.State]
	logs pile[*algorithm.Log]
}

// pile is an array with free places.
type pile[E any] struct {
	all  []E
	free []int64
}

// put returns the place that e has from now on.
func (p *pile[E]) put(e E) int64 {
	if n := len(p.free); n > 0 {
		place := p.free[n-1]
		p.free = p.free[:n-1]
		p.all[place] = e
		return place
	}
	p.all = append(p.all, e)
	return int64(len(p.all) - 1)
}

// drop frees the place.
func (p *pile[E]) drop(place int64) {
	var none E
	p.all[place] = none
	p.free = append(p.free, place)
}

// State returns the state in a slot that AddLog did not make.
func (s *Segment) State(slot *Slot) algorithm.State {
	state := slot.state.unpack()
	if state.Life == onShelf {
		return s.shelf.wide.all[state.A]
	}
	return state
}

// SetState puts a state into such a slot.
func (s *Segment) SetState(slot *Slot, state algorithm.State) {
	p, fits := pack(state)
	if fits && slot.state[1]>>28 != onShelf>>12 {
		slot.set(p)
		return
	}
	s.setWide(slot, state, p, fits)
}

func (s *Segment) setWide(slot *Slot, state algorithm.State, p packed, fits bool) {
	s.unshelve(slot)
	if !fits {
		p = packing(0, onShelf, uint64(s.onShelf().wide.put(state)), isWide)
	}
	slot.set(p)
}

// onShelf returns the segment's shelf, which few segments have.
func (s *Segment) onShelf() *shelf {
	if s.shelf == nil {
		s.shelf = new(shelf)
	}
	return s.shelf
}

// AddLog is Add for a SlidingLog.
func (s *Segment) AddLog(d Digest, now int64) *Slot {
	slot := s.Add(d, now)
	slot.set(packing(1, onShelf, uint64(s.onShelf().logs.put(new(algorithm.Log))), isLog))
	return slot
}

// Log returns the log of a slot that AddLog made.
func (s *Segment) Log(slot *Slot) *algorithm.Log {
	return s.shelf.logs.all[slot.state.unpack().A]
}

// Grown accounts for what the log of slot has grown to.
func (s *Segment) Grown(slot *Slot, now int64) {
	before, weight := weightOf(slot), 1+int64(s.Log(slot).Len()/logEntries)
	state := slot.state.unpack()
	slot.set(packing(uint64(weight), onShelf, uint64(state.A), isLog))
	s.table.weight.Add(weight - before)
	s.lighten(slot, now)
}

// weightOf returns what a slot counts for in Table.weight.
func weightOf(slot *Slot) int64 {
	if state := slot.state.unpack(); state.Life == onShelf && state.B == isLog {
		return state.At
	}
	return 1
}

// unshelve frees what the slot has on the shelf.
func (s *Segment) unshelve(slot *Slot) {
	switch state := slot.state.unpack(); {
	case state.Life != onShelf:
	case state.B == isLog:
		s.shelf.logs.drop(state.A)
	default:
		s.shelf.wide.drop(state.A)
	}
}

// dead returns the instant from which the slot no longer matters.
func (s *Segment) dead(slot *Slot) int64 {
	state := slot.state.unpack()
	if state.Life == onShelf && state.B == isLog {
		return s.shelf.logs.all[state.A].Dead()
	}
	if state.Life == onShelf {
		state = s.shelf.wide.all[state.A]
	}
	return state.At + state.Life
}
