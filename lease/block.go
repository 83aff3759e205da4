package lease

import (
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/algorithm"
)

// A block is a lease: tokens that the store granted at one instant.
type block struct {
	number   uint64    // names it
	asked    time.Time // before the store was asked: the store granted it then or later
	answered time.Time // after the store had answered: it granted it then or earlier
	end      time.Time // from then on nothing of it is spent
	at       time.Time // the instant of the grant by the store's clock
	taken    int64
	left     int64
	aside    int64         // set aside for requests that are not yet decided
	rest     int64         // what the store had left after it
	reset    time.Duration // and the ResetAfter that it gave
}

// newBlock returns the block of n tokens that d granted under l.
func newBlock(number uint64, l headgate.Limit, n int64, d headgate.Decision, asked, answered time.Time, lifetime time.Duration) block {
	life := lifetime
	switch l.Algorithm {
	case headgate.FixedWindow:
		life = min(life, d.ResetAfter)
	case headgate.AlignedWindow, headgate.SlidingWindow:
		life = min(life, untilEdge(d.At, l.Period))
	}
	return block{
		number: number, asked: asked, answered: answered, end: asked.Add(life), at: d.At, taken: n, left: n, rest: d.Remaining, reset: d.ResetAfter,
	}
}

// untilEdge returns the time from at to the end of the window that holds it; of an unknown instant, 0.
func untilEdge(at time.Time, period time.Duration) time.Duration {
	if at.IsZero() {
		return 0
	}
	p := period.Microseconds()
	return time.Duration(p-at.UnixMicro()%p) * time.Microsecond
}

func (b *block) alive(now time.Time) bool { return now.Before(b.end) }

// empty says whether nothing of the block can be spent any more.
func (b block) empty() bool { return b.left == 0 && b.aside == 0 }

// spent returns how many tokens of the block are spent.
func (b *block) spent() int64 { return b.taken - b.left - b.aside }

// instant returns an instant of the store's clock that is not after now, nor before the grant, and lies in the same window.
func (b *block) instant(now time.Time) time.Time {
	return b.at.Add(now.Sub(b.answered).Truncate(time.Microsecond))
}

// resetAfter returns what the store would say of it now, had nobody asked it since.
func (b *block) resetAfter(now time.Time) time.Duration { return max(0, b.reset-now.Sub(b.answered)) }

// returnable returns how much of left can be given back under l in a call that has reached the store by deadline.
//
// In the window that was charged that is all of it. A bucket has drained since the grant, perhaps to nothing but these tokens: as many
// as may have drained of them are not given back, or the bucket would be left with more room than if they had never been taken, and tokens
// passed from lease to lease would outlive L.
func (b *block) returnable(l headgate.Limit, deadline time.Time) int64 {
	if l.Algorithm != headgate.TokenBucket {
		return b.left
	}
	drained := algorithm.MulDivUp(l.Count, ceilMicros(deadline.Sub(b.asked)), l.Period.Microseconds())
	return max(0, b.left-drained)
}

func ceilMicros(d time.Duration) int64 {
	return int64(max(0, d+time.Microsecond-1) / time.Microsecond)
}
