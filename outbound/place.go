package outbound

import (
	"math"
	"time"

	"github.com/headgate/headgate"
)

// wait returns how long whoever takes this place in the line waits at least, and under which limit: as if nothing had been used, and each of
// those before it took one token.
func (b *bill) wait(place int) (longest time.Duration, binding headgate.Limit) {
	if !b.spends {
		return 0, binding
	}
	for _, c := range b.charges {
		if c.Cost == 0 || c.Limit.Count == 0 {
			continue
		}
		if wait := least(c.Limit, float64(place-1)+float64(c.Cost)); wait > longest {
			longest, binding = wait, c.Limit
		}
	}
	return longest, binding
}

// least returns the least time in which l grants so many tokens.
func least(l headgate.Limit, tokens float64) time.Duration {
	late := tokens - float64(l.Capacity())
	if late <= 0 {
		return 0
	}
	periods := late / float64(l.Count)
	if l.Algorithm != headgate.TokenBucket { // a window may end just now, and each later one serves Count
		periods = math.Ceil(periods) - 1
	}
	if wait := periods * float64(l.Period); wait < float64(math.MaxInt64) {
		return time.Duration(wait)
	}
	return headgate.Never
}
