package headgate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
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
	// DefaultMaxKeys, negative is invalid. When it is full, a new key takes the place of one that is among the first to no longer
	// matter; that one then starts anew. [Memory.Evicted] counts those.
	MaxKeys int
}

// Memory is the in-process [Store]: the embedded default, and what [FailLocal] falls back on. It is exact for one process; a fleet of
// processes each with a Memory lets through as many times the limit. It never blocks and looks at no context. Safe for concurrent use.
type Memory struct {
	table  *table.Table
	now    func() int64 // microseconds since the Unix epoch, never less than before
	closed atomic.Bool
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
	return &Memory{table: table.New(cfg.MaxKeys), now: func() int64 { return epoch + time.Since(start).Microseconds() }}, nil
}

// Len returns the number of counters held, including those whose time is over and whose place is not yet used again.
func (m *Memory) Len() int { return m.table.Len() }

// Evicted returns how many counters were dropped before their time because MaxKeys was reached. A number that grows says that MaxKeys
// is too small for the traffic, and that evicted keys got more than their limit.
func (m *Memory) Evicted() int64 { return m.table.Evicted() }

// Close frees the counters. Afterwards every method fails with [ErrClosed]. It always returns nil.
func (m *Memory) Close() error {
	m.closed.Store(true)
	m.table.Clear()
	return nil
}

// Take implements [Store].
func (m *Memory) Take(_ context.Context, first Charge, more ...Charge) (Decision, error) {
	if err := m.check("take", first, more); err != nil {
		return Decision{}, err
	}
	return m.take(first, more), nil
}

// take is Take for charges that are known to be valid.
func (m *Memory) take(first Charge, more []Charge) Decision {
	if len(more) == 0 {
		return m.takeOne(first)
	}
	return m.takeAll(newBill(m.table, first, more))
}

// Refund implements [Store].
func (m *Memory) Refund(ctx context.Context, first Charge, more ...Charge) error {
	if err := m.check("refund", first, more); err != nil {
		return err
	}
	takenAt := int64(0)
	if at, ok := TakenAt(ctx); ok {
		takenAt = at.UnixMicro()
	}
	m.refund(first, more, takenAt)
	return nil
}

// refund is Refund for charges that are known to be valid.
func (m *Memory) refund(first Charge, more []Charge, takenAt int64) {
	b := newBill(m.table, first, more)
	b.lock()
	defer b.unlock()
	now := m.now()
	for i := range b.items {
		b.items[i].refund(now, takenAt)
	}
}

// Reset implements [Store].
func (m *Memory) Reset(_ context.Context, first Charge, more ...Charge) error {
	if err := m.check("reset", first, more); err != nil {
		return err
	}
	b := newBill(m.table, first, more)
	b.lock()
	defer b.unlock()
	for i := range b.items {
		if it := &b.items[i]; it.slot() != nil {
			it.shard.Remove(it.slot())
		}
	}
	return nil
}

func (m *Memory) check(op string, first Charge, more []Charge) error {
	if m.closed.Load() {
		return &StoreError{Op: op, Err: ErrClosed}
	}
	return CheckCharges(first, more)
}

// takeOne is Take for a single charge: no list, no allocation once the key is known.
func (m *Memory) takeOne(c Charge) Decision {
	it := item{key: keyOf(c), params: c.Limit.params(), cost: c.Cost}
	it.shard = m.table.Shard(m.table.ShardOf(&it.key))
	it.shard.Lock()
	now := m.now() // inside the lock: instants of one key are in the order of its decisions
	it.check(now)
	if it.verdict.Allowed {
		it.commit(now)
	}
	it.shard.Unlock()
	v := it.verdict
	d := Decision{Allowed: v.Allowed, Limit: c.Limit, Remaining: v.Remaining, At: time.UnixMicro(now)}
	d.RetryAfter, d.ResetAfter = micros(v.Retry), micros(v.Reset)
	return d
}

// takeAll decides a bill under the locks of all its shards, at one instant.
func (m *Memory) takeAll(b bill) Decision {
	b.lock()
	now := m.now()
	allowed := true
	for i := range b.items {
		b.items[i].check(now)
		allowed = allowed && b.items[i].verdict.Allowed
	}
	for i := range b.items {
		if it := &b.items[i]; allowed {
			it.commit(now)
		} else if it.verdict.Allowed { // it had room, and is not charged
			it.cost = 0
			it.check(now)
		}
	}
	b.unlock()
	states := make([]State, len(b.limits))
	for i, limit := range b.limits {
		it := &b.items[b.itemOf[i]]
		v := it.verdict
		states[i] = State{Limit: limit, Allowed: v.Allowed, Remaining: v.Remaining, RetryAfter: micros(v.Retry), ResetAfter: micros(v.Reset)}
	}
	return Decide(time.UnixMicro(now), states)
}

// micros turns microseconds of the algorithms into a Duration; Never stays Never.
func micros(us int64) time.Duration {
	if us == algorithm.Never {
		return Never
	}
	return time.Duration(us) * time.Microsecond
}

// keyOf names the counter of c as [Limit.ID] does, without building a string.
func keyOf(c Charge) table.Key {
	k := table.Key{Owner: c.Key, Limit: c.Limit.Name, Kind: algorithm.Kind(c.Limit.Algorithm)}
	if c.Limit.Name == "" {
		k.Count, k.Period, k.Burst = c.Limit.Count, int64(c.Limit.Period), c.Limit.Burst
	}
	return k
}

// An item is what a request asks of one counter: charges of the same key and limit are one.
type item struct {
	key     table.Key
	params  algorithm.Params
	cost    int64
	shard   *table.Shard
	shardNo int
	next    algorithm.State // what check found to be the state after a grant
	verdict algorithm.Verdict
}

func (it *item) slot() *table.Slot { return it.shard.Find(&it.key) }

// check finds out whether the counter has room, and charges nothing. Its shard is locked.
func (it *item) check(now int64) {
	slot := it.slot()
	if it.params.Kind == algorithm.SlidingLog {
		log := new(algorithm.Log)
		if slot != nil {
			log = slot.Log
		}
		it.verdict = log.Check(it.params, now, it.cost)
		return
	}
	var state algorithm.State
	if slot != nil {
		if it.cost > 0 { // whoever denies, and unless it only looks, a request moves its counters to where time stepped back to
			slot.State.At = min(slot.State.At, now)
		}
		state = slot.State
	}
	it.next, it.verdict = algorithm.Take(it.params, state, now, it.cost)
}

// commit charges what check found room for, at the same instant.
func (it *item) commit(now int64) {
	if it.cost == 0 {
		return
	}
	slot := it.slot()
	if slot == nil {
		slot = it.shard.Add(&it.key, now)
	}
	if slot.Log != nil {
		it.verdict = slot.Log.Grant(it.params, now, it.cost)
		it.shard.Grown(slot, now)
		return
	}
	slot.State = it.next
}

func (it *item) refund(now, takenAt int64) {
	slot := it.slot()
	switch {
	case slot == nil || it.cost == 0:
	case slot.Log != nil:
		slot.Log.Refund(it.params, now, it.cost, takenAt)
		it.shard.Grown(slot, now)
	default:
		slot.State = algorithm.Refund(it.params, slot.State, now, it.cost, takenAt)
	}
}

// A bill is a request's charges, brought together by counter.
type bill struct {
	items  []item
	itemOf []int // for each charge
	limits []Limit
	shards []*table.Shard // the items' shards, in the order in which they are locked
}

func newBill(t *table.Table, first Charge, more []Charge) bill {
	n := 1 + len(more)
	b := bill{items: make([]item, 0, n), itemOf: make([]int, n), limits: make([]Limit, n)}
	for i := range n {
		c := first
		if i > 0 {
			c = more[i-1]
		}
		b.limits[i] = c.Limit
		key := keyOf(c)
		j := slices.IndexFunc(b.items, func(it item) bool { return it.key == key })
		if j < 0 {
			j = len(b.items)
			no := t.ShardOf(&key)
			b.items = append(b.items, item{key: key, params: c.Limit.params(), shard: t.Shard(no), shardNo: no})
		}
		b.itemOf[i] = j
		b.items[j].cost = addCost(b.items[j].cost, c.Cost)
	}
	order := make([]int, len(b.items))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(x, y int) int { return cmp.Compare(b.items[x].shardNo, b.items[y].shardNo) })
	for _, i := range order {
		if len(b.shards) == 0 || b.shards[len(b.shards)-1] != b.items[i].shard {
			b.shards = append(b.shards, b.items[i].shard)
		}
	}
	return b
}

// addCost adds costs of 0 or more; what does not fit is more than any capacity, and so is its largest value.
func addCost(a, b int64) int64 {
	if sum := a + b; sum >= 0 {
		return sum
	}
	return int64(^uint64(0) >> 1)
}

func (b *bill) lock() {
	for _, s := range b.shards {
		s.Lock()
	}
}

func (b *bill) unlock() {
	for _, s := range b.shards {
		s.Unlock()
	}
}
