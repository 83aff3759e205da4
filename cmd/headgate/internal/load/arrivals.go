package load

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"time"
)

// Arrivals returns, call by call, when the next request is due: the time since the start of the run, never less than before.
type Arrivals func() time.Duration

// Constant returns count arrivals per period, evenly spaced, the first at 0. Both must be above 0. The spacing is not rounded, so a long run has
// neither more nor fewer than it should.
func Constant(count int64, period time.Duration) Arrivals {
	n := uint64(0)
	return func() time.Duration {
		high, low := bits.Mul64(n, uint64(period))
		n++
		if high >= uint64(count) {
			return math.MaxInt64
		}
		due, _ := bits.Div64(high, low, uint64(count))
		return time.Duration(min(due, math.MaxInt64))
	}
}

// Poisson returns count arrivals per period on average, independent of each other, as those of many callers are. Both must be above 0.
func Poisson(count int64, period time.Duration, random *rand.Rand) Arrivals {
	mean := float64(period) / float64(count)
	due := 0.0
	return func() time.Duration {
		due += random.ExpFloat64() * mean
		if due >= math.MaxInt64 {
			return math.MaxInt64
		}
		return time.Duration(due)
	}
}
