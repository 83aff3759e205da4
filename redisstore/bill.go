package redisstore

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/algorithm"
)

// A bill is one request: its charges brought together by counter, and what the script found out about each.
type bill struct {
	items  []billed
	itemOf []int // for each charge
	limits []headgate.Limit
}

// billed is an item of a bill with its verdict.
type billed struct {
	item
	verdict algorithm.Verdict
}

// A group is the part of a bill that the script decides in one step.
type group []*billed

func newBill(l *layout, first headgate.Charge, more []headgate.Charge) *bill {
	n := 1 + len(more)
	b := &bill{items: make([]billed, 0, n), itemOf: make([]int, n), limits: make([]headgate.Limit, n)}
	for i := range n {
		c := first
		if i > 0 {
			c = more[i-1]
		}
		b.limits[i] = c.Limit
		f, shard := field(c), l.shardOf(c.Key)
		j := slices.IndexFunc(b.items, func(it billed) bool { return it.shard == shard && it.field == f })
		if j < 0 {
			j = len(b.items)
			p := algorithm.NewParams(algorithm.Kind(c.Limit.Algorithm), c.Limit.Count, c.Limit.Period.Microseconds(), c.Limit.Burst)
			b.items = append(b.items, billed{item: item{field: f, shard: shard, params: p, named: c.Limit.Name != ""}})
		}
		b.itemOf[i] = j
		if it := &b.items[j]; it.cost > math.MaxInt64-c.Cost {
			it.cost = math.MaxInt64 // more than any capacity, as the sum is
		} else {
			it.cost += c.Cost
		}
	}
	return b
}

// groups splits the bill by shard, in the order of first appearance, or leaves it whole.
func (b *bill) groups(bySlot bool) []group {
	var groups []group
	for i := range b.items {
		it := &b.items[i]
		j := 0
		if bySlot {
			j = slices.IndexFunc(groups, func(g group) bool { return g[0].shard == it.shard })
		}
		if j < 0 || len(groups) == 0 {
			groups = append(groups, group{it})
			continue
		}
		groups[j] = append(groups[j], it)
	}
	return groups
}

func (g group) items() []item {
	items := make([]item, len(g))
	for i, it := range g {
		items[i] = it.item
	}
	return items
}

// fill gives the items of g their verdicts from the answer to a batch that held g alone.
func (r reply) fill(g group, granted bool) error {
	if len(r.states) != len(g) {
		return fmt.Errorf("script answered %d states for %d counters", len(r.states), len(g))
	}
	for i, it := range g {
		v, err := r.verdict(i, it.item, granted)
		if err != nil {
			return err
		}
		it.verdict = v
	}
	return nil
}

// decision puts the verdicts together.
func (b *bill) decision(at time.Time) headgate.Decision {
	states := make([]headgate.State, len(b.limits))
	for i, limit := range b.limits {
		states[i] = state(limit, b.items[b.itemOf[i]].verdict)
	}
	return headgate.Decide(at, states)
}

// class returns the largest class that the bill touches.
func (b *bill) class() int {
	c := 0
	for i := range b.items {
		c = max(c, classOf(b.items[i].params))
	}
	return c
}
