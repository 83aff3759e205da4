package headgate

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/internal/algorithm"
	"github.com/headgate/headgate/internal/table"
)

// DefaultMaxKeys is the MaxKeys of a Memory that does not set it: about a million.
const DefaultMaxKeys = 1 << 20

// MemoryConfig configures a [Memory]. The zero value is good.
type MemoryConfig struct {
	// MaxKeys bounds the counters kept, one for each key and limit; every four entries of a sliding log count as one more. 0 =
	// DefaultMaxKeys, negative is invalid, more than 2^30 counts as that. A counter takes about 55 bytes, and MaxKeys itself up to a byte
	// for each, from the start: less, the larger it is. When a Memory is full, a new key takes the place of one that is among the first to
	// no longer matter; that one then starts anew. [Memory.Evicted] counts those. The counter that a request has just charged stays,
	// whatever its size: so with sliding logs of a large Count a Memory may hold one of them in each of its parts beyond MaxKeys, of which
	// there are one, or MaxKeys/64 at most, and never more than 65,536.
	MaxKeys int
}

// Memory is the in-process [Store]: the embedded default, and what [FailLocal] falls back on. It is exact for one process; a fleet of
// processes each with a Memory lets through as many times the limit. It never blocks and looks at no context. Safe for concurrent use: who
// is denied a known key, or looks at one, takes no lock, unless others charge keys of the same part at that very time; sliding logs always do.
//
// It keeps no key, but a digest of 128 bits under a secret of its own, and its state beside it: nothing that the garbage collector
// would follow. docs/semantics.md says what two keys of one digest would mean, and how improbable they are.
type Memory struct {
	table  *table.Table
	now    func() int64 // microseconds since the Unix epoch
	steady bool         // now never steps back
	closed atomic.Bool
	bills  sync.Pool // *bill
	rules  rules
}

var _ Store = (*Memory)(nil)

// NewMemory returns an empty Memory, or an error that matches [ErrInvalidConfig].
func NewMemory(cfg MemoryConfig) (*Memory, error) {
	if cfg.MaxKeys < 0 {
		return nil, fmt.Errorf("%w: MaxKeys %d, want 0 (= %d) or more", ErrInvalidConfig, cfg.MaxKeys, DefaultMaxKeys)
	}
	if cfg.MaxKeys == 0 {
		cfg.MaxKeys = DefaultMaxKeys
	}
	start := time.Now()
	epoch := start.UnixMicro()
	return &Memory{
		table:  table.New(cfg.MaxKeys),
		now:    func() int64 { return epoch + time.Since(start).Microseconds() }, // the monotonic clock alone: half of what time.Now costs
		steady: true,
		bills:  sync.Pool{New: func() any { return new(bill) }},
	}, nil
}

// Len returns the number of counters held, including those whose time is over and whose place is not yet used again.
func (m *Memory) Len() int { return m.table.Len() }

// Evicted returns how many counters were dropped before their time because MaxKeys was reached. A number that grows says that MaxKeys
// is too small for the traffic, and that evicted keys got more than their limit.
func (m *Memory) Evicted() int64 { return m.table.Evicted() }

// Close frees the counters. Afterwards every method fails with [ErrClosed], and no call that was under way adds a counter. It always returns nil.
func (m *Memory) Close() error {
	m.closed.Store(true)
	m.table.Close()
	return nil
}

// Take implements [Store].
func (m *Memory) Take(_ context.Context, first Charge, more ...Charge) (d Decision, err error) {
	if r := m.rules.known(&first.Limit); r != nil && len(more) == 0 && first.sound() {
		err = m.takeBy(&d, &first, r)
		return d, err
	}
	if err = m.check("take", &first, more); err == nil {
		err = m.take(&d, &first, more)
	}
	return d, err
}

// take is Take for charges that are known to be valid. It fills in d, which is empty: to hand it back by value, from function to
// function, costs as much as the decision itself.
func (m *Memory) take(d *Decision, first *Charge, more []Charge) error {
	if len(more) > 0 {
		return m.takeAll(d, first, more)
	}
	if r := m.rules.known(&first.Limit); r != nil {
		return m.takeBy(d, first, r)
	}
	r := m.learn(&first.Limit)
	return m.takeBy(d, first, &r)
}

// Refund implements [Store].
func (m *Memory) Refund(ctx context.Context, first Charge, more ...Charge) error {
	if err := m.check("refund", &first, more); err != nil {
		return err
	}
	takenAt := int64(0)
	if at, ok := TakenAt(ctx); ok {
		takenAt = at.UnixMicro()
	}
	return m.refund(&first, more, takenAt)
}

// refund is Refund for charges that are known to be valid.
func (m *Memory) refund(first *Charge, more []Charge, takenAt int64) error {
	b := m.newBill(first, more)
	defer m.bills.Put(b)
	now := m.now()
	if !b.lock(m.table) {
		return closed("refund")
	}
	defer b.unlock(m.table)
	now = m.instant(b, now)
	for i := range b.items {
		it := &b.items[i]
		it.refund(m.segment(it), now, takenAt)
	}
	return nil
}

// Reset implements [Store].
func (m *Memory) Reset(_ context.Context, first Charge, more ...Charge) error {
	if err := m.check("reset", &first, more); err != nil {
		return err
	}
	b := m.newBill(&first, more)
	defer m.bills.Put(b)
	now := m.now()
	if !b.lock(m.table) {
		return closed("reset")
	}
	defer b.unlock(m.table)
	m.instant(b, now) // what comes after it is not at an earlier one
	for i := range b.items {
		m.segment(&b.items[i]).Remove(b.items[i].digest)
	}
	return nil
}

func (m *Memory) check(op string, first *Charge, more []Charge) error {
	if m.closed.Load() {
		return closed(op)
	}
	return checkCharges(first, more)
}

func closed(op string) error { return &StoreError{Op: op, Err: ErrClosed} }

// takeBy is Take for a single charge, whose limit has the rule r: no list, no allocation.
func (m *Memory) takeBy(d *Decision, c *Charge, r *rule) error {
	digest := m.table.Digest(c.Key, r.digest)
	now := m.now() // not under the lock, where others would wait for it
	s := m.table.Segment(m.table.SegmentOf(digest))
	v, done := m.takeUnlocked(s, digest, &r.params, &now, c.Cost)
	if !done {
		if !s.Lock() {
			return closed("take")
		}
		if m.steady {
			now = s.Instant(now, m.now)
		}
		v = takeFrom(s, digest, &r.params, now, c.Cost)
		s.Unlock()
	}
	d.Allowed, d.Remaining, d.RetryAfter, d.ResetAfter = v.Allowed, v.Remaining, micros(v.Retry), micros(v.Reset)
	d.Limit, d.At = r.limit, time.UnixMicro(now)
	return nil
}

// takeUnlocked decides without the lock. Where a counter is to be charged, it locks the segment only to put in the next state, if what was
// read is still so. It returns false if nothing was decided: where another one is at work, and for new counters, logs and states on a
// shelf, the lock comes first. now is the clock's, and becomes the instant of the decision.
func (m *Memory) takeUnlocked(s *table.Segment, d table.Digest, p *algorithm.Params, now *int64, cost int64) (v algorithm.Verdict, done bool) {
	version, free := s.Version()
	if !free || p.Kind == algorithm.SlidingLog {
		return v, false
	}
	if m.steady {
		*now = s.After(*now)
	}
	slot, state, ok := s.Read(version, d)
	if !ok || state.At > *now && cost > 0 { // see check
		return v, false
	}
	v = state.Take(p, *now, cost)
	if !v.Allowed || cost == 0 {
		return v, !m.steady || s.Stands(version)
	}
	if slot == nil || !s.LockAt(version, *now) {
		return v, false
	}
	s.SetState(slot, state)
	s.Unlock()
	return v, true
}

// takeFrom decides one charge in its segment, which is locked.
func takeFrom(s *table.Segment, d table.Digest, p *algorithm.Params, now, cost int64) algorithm.Verdict {
	slot := s.Find(d)
	if p.Kind == algorithm.SlidingLog {
		v := checkLog(s, slot, p, now, cost)
		if v.Allowed && cost > 0 {
			v = grantLog(s, slot, d, p, now, cost)
		}
		return v
	}
	var state algorithm.State
	v := check(s, slot, p, &state, now, cost)
	if v.Allowed && cost > 0 {
		commit(s, slot, d, state, now)
	}
	return v
}

// takeAll decides several charges under the locks of all their segments, at one instant.
func (m *Memory) takeAll(d *Decision, first *Charge, more []Charge) error {
	b := m.newBill(first, more)
	defer m.bills.Put(b)
	now := m.now()
	if !b.lock(m.table) {
		return closed("take")
	}
	now = m.instant(b, now)
	m.decide(b, now)
	b.unlock(m.table)
	states := make([]State, 1+len(more))
	for i := range states {
		v := &b.items[b.itemOf[i]].verdict
		states[i] = State{Limit: first.Limit, Allowed: v.Allowed, Remaining: v.Remaining, RetryAfter: micros(v.Retry), ResetAfter: micros(v.Reset)}
		if i > 0 {
			states[i].Limit = more[i-1].Limit
		}
	}
	*d = Decide(time.UnixMicro(now), states)
	return nil
}

// decide charges all items of a bill, or none. Its segments are locked.
func (m *Memory) decide(b *bill, now int64) {
	allowed := true
	for i := range b.items {
		it := &b.items[i]
		it.check(m.segment(it), now)
		allowed = allowed && it.verdict.Allowed
	}
	for i := range b.items {
		it := &b.items[i]
		if allowed {
			it.commit(m.segment(it), now)
		} else if it.verdict.Allowed { // it had room, and is not charged
			it.cost = 0
			it.check(m.segment(it), now)
		}
	}
}

// micros turns microseconds of the algorithms into a Duration; Never stays Never.
func micros(us int64) time.Duration {
	if us == algorithm.Never {
		return Never
	}
	return time.Duration(us) * time.Microsecond
}
