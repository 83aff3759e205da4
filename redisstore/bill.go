package redisstore

import (
	"slices"
	"sync"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/algorithm"
)

// An item is what a request asks of one counter: charges of the same key and limit are one.
type item struct {
	rule    *rule
	field   string
	shard   int
	cost    int64
	place   place  // in the batch that it travels in
	raw     string // the counter's state as the script answered it
	verdict algorithm.Verdict
}

// A bill is what one call of the store asks for, its charges brought together by counter.
type bill struct {
	items   []item
	itemOf  []int // the item of each charge; nil for a single charge
	single  [1]item
	request request // for all items, where one step decides them
}

// bills are used again once nobody else can hold on to them.
var bills = sync.Pool{New: func() any { return new(bill) }}

// newBill brings together charges that are valid.
func (s *Store) newBill(first headgate.Charge, more []headgate.Charge) *bill {
	b := bills.Get().(*bill)
	b.single[0] = s.item(first)
	b.items, b.itemOf = b.single[:], nil
	if len(more) == 0 {
		return b
	}
	b.itemOf = make([]int, 1, 1+len(more))
	b.items = append(make([]item, 0, 1+len(more)), b.single[0])
	for _, c := range more {
		it := s.item(c)
		i := slices.IndexFunc(b.items, func(o item) bool { return o.shard == it.shard && o.field == it.field })
		if i < 0 {
			i = len(b.items)
			b.items = append(b.items, it)
		} else {
			b.items[i].cost = algorithm.Add(b.items[i].cost, it.cost)
		}
		b.itemOf = append(b.itemOf, i)
	}
	return b
}

// free gives b up to be used again.
func (b *bill) free() {
	b.items, b.itemOf, b.single[0] = nil, nil, item{}
	b.request.clear()
	bills.Put(b)
}

func (s *Store) item(c headgate.Charge) item {
	r := s.rules.of(c.Limit)
	return item{rule: r, field: r.field(c.Key), shard: s.layout.shardOf(c.Key), cost: c.Cost}
}

// A group is the part of a bill that the script decides in one step.
type group []item

// groups splits the bill by shard, in the order of first appearance, or leaves it whole.
func (b *bill) groups(bySlot bool) []group {
	if !bySlot || len(b.items) == 1 {
		return []group{b.items}
	}
	b.sortByShard()
	var groups []group
	for from := 0; from < len(b.items); {
		to := from + 1
		for to < len(b.items) && b.items[to].shard == b.items[from].shard {
			to++
		}
		groups = append(groups, b.items[from:to])
		from = to
	}
	return groups
}

// sortByShard brings items of one shard next to each other.
func (b *bill) sortByShard() {
	var shards []int
	for i := range b.items {
		if !slices.Contains(shards, b.items[i].shard) {
			shards = append(shards, b.items[i].shard)
		}
	}
	sorted, at := make([]item, 0, len(b.items)), make([]int, len(b.items))
	for _, shard := range shards {
		for i := range b.items {
			if b.items[i].shard == shard {
				at[i] = len(sorted)
				sorted = append(sorted, b.items[i])
			}
		}
	}
	for c, i := range b.itemOf {
		b.itemOf[c] = at[i]
	}
	b.items = sorted
}

// decision puts the verdicts together, for the charges that the bill was made of.
func (b *bill) decision(at time.Time, first headgate.Charge, more []headgate.Charge) headgate.Decision {
	if len(more) == 0 {
		s := state(first.Limit, b.items[0].verdict)
		return headgate.Decision{Allowed: s.Allowed, Limit: s.Limit, Remaining: s.Remaining, RetryAfter: s.RetryAfter, ResetAfter: s.ResetAfter, At: at}
	}
	states := make([]headgate.State, 1+len(more))
	states[0] = state(first.Limit, b.items[0].verdict)
	for i, c := range more {
		states[1+i] = state(c.Limit, b.items[b.itemOf[1+i]].verdict)
	}
	return headgate.Decide(at, states)
}

// state puts a verdict about a charge into the terms of the caller.
func state(limit headgate.Limit, v algorithm.Verdict) headgate.State {
	s := headgate.State{Limit: limit, Allowed: v.Allowed, Remaining: v.Remaining, ResetAfter: time.Duration(v.Reset) * time.Microsecond}
	if s.RetryAfter = headgate.Never; v.Retry != algorithm.Never {
		s.RetryAfter = time.Duration(v.Retry) * time.Microsecond
	}
	return s
}

// class returns the largest class that the bill touches.
func (b *bill) class() int {
	c := 0
	for i := range b.items {
		c = max(c, b.items[i].rule.class)
	}
	return c
}
