package lease

import (
	"slices"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/algorithm"
)

// A key names a counter, as a key and [headgate.Limit.ID] do.
type key struct {
	owner string
	limit headgate.Limit // of a limit with a name, the name and the algorithm alone
}

func keyOf(c headgate.Charge) key {
	l := c.Limit
	if l.Name != "" {
		l = headgate.Limit{Name: l.Name, Algorithm: l.Algorithm}
	}
	return key{c.Key, l}
}

// An account is what this process holds of one counter. Its shard is locked whenever it is touched.
type account struct {
	key    key
	limit  headgate.Limit // under which blocks were taken
	blocks []block        // the oldest first, which is the first to end
	demand demand
	refill *refill // under way; nil = none
	epoch  uint64  // moved when what is on its way from the store must not be spent
	frozen int     // resets under way: nothing is leased
	used   time.Time
}

// maxBlocks bounds the blocks of an account. There is more than one only where costs differ, since one is taken when what is held is
// not enough.
const maxBlocks = 4

// held adds up what can be spent now.
func (a *account) held(now time.Time) int64 {
	sum := int64(0)
	for i := range a.blocks {
		if b := &a.blocks[i]; b.alive(now) {
			sum += b.left
		}
	}
	return sum
}

// expire drops the blocks whose time is over and returns how many tokens of theirs were not spent.
func (a *account) expire(now time.Time) int64 {
	stranded := int64(0)
	a.blocks = slices.DeleteFunc(a.blocks, func(b block) bool {
		if b.alive(now) {
			return false
		}
		stranded += b.left
		return true
	})
	return stranded
}

// add puts a block behind the others, of which those that are used up go.
func (a *account) add(b block) {
	a.blocks = append(slices.DeleteFunc(a.blocks, block.empty), b)
}

// full says whether there are as many blocks as may be.
func (a *account) full() bool {
	n := 0
	for _, b := range a.blocks {
		if !b.empty() {
			n++
		}
	}
	return n >= maxBlocks
}

// drop forgets all blocks, and what is on its way. It returns how many tokens were not spent.
func (a *account) drop() int64 {
	stranded := int64(0)
	for i := range a.blocks {
		stranded += a.blocks[i].left
	}
	a.blocks = a.blocks[:0]
	a.epoch++
	a.demand = demand{}
	return stranded
}

// pinned says whether the account must stay where it is: something is under way that will come back to it.
func (a *account) pinned() bool {
	return a.refill != nil || a.frozen > 0 || slices.ContainsFunc(a.blocks, func(b block) bool { return b.aside > 0 })
}

// spend spends n tokens, of which so many are held, the oldest first. aside, unless it is nil, sets them aside instead, and is told of which
// blocks they are.
func (a *account) spend(n int64, now time.Time, aside func(number uint64, n int64)) {
	for i := range a.blocks {
		b := &a.blocks[i]
		part := min(n, b.left)
		if part == 0 || !b.alive(now) {
			continue
		}
		b.left -= part
		n -= part
		if aside != nil {
			b.aside += part
			aside(b.number, part)
		}
	}
}

// refund puts back up to n tokens that were spent, into blocks that are alive and not younger than takenAt, and returns how many.
func (a *account) refund(n int64, takenAt, now time.Time) int64 {
	back := int64(0)
	for i := len(a.blocks) - 1; i >= 0; i-- {
		b := &a.blocks[i]
		if !b.alive(now) || !takenAt.IsZero() && takenAt.Before(b.at) {
			continue
		}
		part := min(n-back, b.spent())
		b.left += part
		back += part
	}
	return back
}

// block returns the block of a number; nil = it was dropped.
func (a *account) block(number uint64) *block {
	for i := range a.blocks {
		if a.blocks[i].number == number {
			return &a.blocks[i]
		}
	}
	return nil
}

// youngest is the block that knows most about the store. There must be one.
func (a *account) youngest() *block { return &a.blocks[len(a.blocks)-1] }

// state is what a charge that was spent here finds: what is held after it and what the store had left after the youngest block.
func (a *account) state(l headgate.Limit, now time.Time) headgate.State {
	b := a.youngest()
	return headgate.State{
		Limit: l, Allowed: true, Remaining: min(l.Capacity(), algorithm.Add(a.held(now), b.rest)), ResetAfter: b.resetAfter(now),
	}
}
