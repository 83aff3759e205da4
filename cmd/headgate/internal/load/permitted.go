package load

import (
	"math"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/algorithm"
)

// Permitted returns the most tokens that l can grant one key in an interval of d by the limiter's clock, both of its ends included. Fresh says that
// the interval holds all that the key was ever granted, and begins with the first. What does not fit is math.MaxInt64; d must not be negative.
//
// docs/semantics.md says what each algorithm guarantees. Since its clock counts in microseconds, an interval of d holds d+1 instants:
//
//   - A token bucket grants its capacity and Count*d/Period more.
//   - Windows that follow each other may begin just before the interval ends, and end just after it begins: d+1 instants touch
//     2 + (d-1)/Period of them, each with Count. Fixed windows of a fresh key begin with its first grant, so there are 1 + d/Period.
//   - A sliding window is an aligned one that also grants no more than 2*Count-1 in a Period, and 1 + d/Period of those cover the interval.
//   - A sliding log grants Count in a Period.
func Permitted(l headgate.Limit, d time.Duration, fresh bool) int64 {
	if l.Count == 0 {
		return 0
	}
	instants := int64((d + time.Microsecond - 1) / time.Microsecond)
	period := l.Period.Microseconds()
	covers := 1 + instants/period
	touched := int64(1)
	if instants > 0 {
		touched = 2 + (instants-1)/period
	}
	switch l.Algorithm {
	case headgate.TokenBucket:
		refilled, _ := algorithm.MulDiv(l.Count, instants, period)
		return algorithm.Add(l.Capacity(), refilled)
	case headgate.FixedWindow:
		if fresh {
			touched = covers
		}
		return algorithm.Mul(l.Count, touched)
	case headgate.AlignedWindow:
		return algorithm.Mul(l.Count, touched)
	case headgate.SlidingWindow:
		return min(algorithm.Mul(l.Count, touched), algorithm.Mul(2*l.Count-1, covers))
	default:
		return algorithm.Mul(l.Count, covers)
	}
}

// Bounds on how the clocks of limiter and client differ over one run: a thousandth of any span, which is more than clocks drift and are slewed
// by, and a millisecond for reading them.
const (
	ClockDrift = 1000 // a span may be longer by its 1/ClockDrift
	ClockSlack = time.Millisecond
)

// stretch returns the longest that a span of d by the client's clock can be by the limiter's.
func stretch(d time.Duration) time.Duration {
	if d > math.MaxInt64/2 {
		return math.MaxInt64
	}
	return d + d/ClockDrift + ClockSlack
}

// windowOf returns how long a window of the client's clock is watched for a limit of that period: the longest that is certain to be less than a
// period for the limiter, or, where the clocks are too coarse for that, the period.
func windowOf(period time.Duration) time.Duration {
	w := period - ClockSlack - time.Microsecond
	w = (w - w/ClockDrift).Truncate(time.Microsecond)
	if w <= 0 {
		return period
	}
	return w
}
