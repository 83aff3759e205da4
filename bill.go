package headgate

import (
	"slices"

	"github.com/headgate/headgate/internal/algorithm"
	"github.com/headgate/headgate/internal/table"
)

// An item is what a request asks of one counter of a [Memory]: charges of the same key and limit are one.
type item struct {
	digest  table.Digest
	segment int
	params  algorithm.Params
	cost    int64
	next    algorithm.State // what check found to be the state after a grant
	verdict algorithm.Verdict
}

// segment returns where the counter lies.
func (m *Memory) segment(it *item) *table.Segment { return m.table.Segment(it.segment) }

// check finds out whether the counter has room, and charges nothing. Its segment is locked.
func (it *item) check(s *table.Segment, now int64) {
	slot := s.Find(it.digest)
	if it.params.Kind == algorithm.SlidingLog {
		it.verdict = checkLog(s, slot, &it.params, now, it.cost)
		return
	}
	it.next = algorithm.State{}
	it.verdict = check(s, slot, &it.params, &it.next, now, it.cost)
}

// commit charges what check found room for, at the same instant.
func (it *item) commit(s *table.Segment, now int64) {
	slot := s.Find(it.digest)
	switch {
	case it.cost == 0:
	case it.params.Kind == algorithm.SlidingLog:
		it.verdict = grantLog(s, slot, it.digest, &it.params, now, it.cost)
	default:
		commit(s, slot, it.digest, it.next, now)
	}
}

func (it *item) refund(s *table.Segment, now, takenAt int64) {
	slot := s.Find(it.digest)
	switch {
	case slot == nil || it.cost == 0:
	case it.params.Kind == algorithm.SlidingLog:
		s.Log(slot).Refund(it.params, now, it.cost, takenAt)
		s.Grown(slot, now)
	default:
		s.SetState(slot, algorithm.Refund(it.params, s.State(slot), now, it.cost, takenAt))
	}
}

// check finds out whether the counter in slot, which may be nil, has room for cost, and charges nothing. state, which is zero, is then that after the grant.
func check(s *table.Segment, slot *table.Slot, p *algorithm.Params, state *algorithm.State, now, cost int64) algorithm.Verdict {
	if slot != nil {
		*state = s.State(slot)
		if state.At > now && cost > 0 { // whoever denies, and unless it only looks, a request moves its counters to where time stepped back to
			state.At = now
			s.SetState(slot, *state)
		}
	}
	return state.Take(p, now, cost)
}

// commit keeps the state that check returned.
func commit(s *table.Segment, slot *table.Slot, d table.Digest, next algorithm.State, now int64) {
	if slot == nil {
		slot = s.Add(d, now)
	}
	s.SetState(slot, next)
}

// checkLog is check for a sliding log.
func checkLog(s *table.Segment, slot *table.Slot, p *algorithm.Params, now, cost int64) algorithm.Verdict {
	if slot == nil {
		var none algorithm.Log
		return none.Check(*p, now, cost)
	}
	return s.Log(slot).Check(*p, now, cost)
}

// grantLog is commit for a sliding log.
func grantLog(s *table.Segment, slot *table.Slot, d table.Digest, p *algorithm.Params, now, cost int64) algorithm.Verdict {
	if slot == nil {
		slot = s.AddLog(d, now)
	}
	v := s.Log(slot).Grant(*p, now, cost)
	s.Grown(slot, now)
	return v
}

// A bill is a request's charges, brought together by counter. It is used again: see Memory.bills.
type bill struct {
	items    []item
	itemOf   []int // for each charge
	segments []int // the items' segments, each once, in the order in which they are locked
}

func (m *Memory) newBill(first *Charge, more []Charge) *bill {
	b := m.bills.Get().(*bill)
	b.items, b.itemOf, b.segments = b.items[:0], b.itemOf[:0], b.segments[:0]
	m.add(b, first)
	for i := range more {
		m.add(b, &more[i])
	}
	slices.Sort(b.segments)
	b.segments = slices.Compact(b.segments)
	return b
}

// add puts c on the bill.
func (m *Memory) add(b *bill, c *Charge) {
	r := m.rules.known(&c.Limit)
	if r == nil {
		learned := m.learn(&c.Limit)
		r = &learned
	}
	digest := m.table.Digest(c.Key, r.digest)
	i := slices.IndexFunc(b.items, func(it item) bool { return it.digest == digest })
	if i < 0 {
		i = len(b.items)
		segment := m.table.SegmentOf(digest)
		b.items = append(b.items, item{digest: digest, segment: segment, params: r.params})
		b.segments = append(b.segments, segment)
	}
	b.itemOf = append(b.itemOf, i)
	b.items[i].cost = algorithm.Add(b.items[i].cost, c.Cost)
}

// lock locks the segments; it returns false, with none locked, if the table is closed.
func (b *bill) lock(t *table.Table) bool {
	for i, n := range b.segments {
		if !t.Segment(n).Lock() {
			for _, n := range b.segments[:i] {
				t.Segment(n).Unlock()
			}
			return false
		}
	}
	return true
}

func (b *bill) unlock(t *table.Table) {
	for _, n := range b.segments {
		t.Segment(n).Unlock()
	}
}

// instant returns the instant of a bill, whose segments are locked, for a clock that was read before, and may be read again.
func (m *Memory) instant(b *bill, now int64) int64 {
	if !m.steady {
		return now
	}
	for _, n := range b.segments {
		now = m.table.Segment(n).Instant(now, m.now)
	}
	for _, n := range b.segments { // the latest of them is that of all
		m.table.Segment(n).Advance(now)
	}
	return now
}
