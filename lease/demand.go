package lease

import (
	"time"

	"github.com/headgate/headgate/internal/algorithm"
)

// A demand is what is known of how much of a counter this process needs, and how much of it there is.
type demand struct {
	since  time.Time // the measure began
	tokens int64     // asked for since
	extra  int64     // tokens of the latest block beyond what its first caller needed
	rest   int64     // what the store last said is left; after a denial and at the start 0
}

// growth is by how much a block may be larger than the one before: a rate measured over a moment says little.
const growth = 4

// ask notes that cost tokens are asked for.
func (m *demand) ask(now time.Time, cost int64) {
	if m.since.IsZero() {
		m.since = now
	}
	m.tokens = algorithm.Add(m.tokens, cost)
}

// size returns how many tokens the next block takes, for a first caller that needs cost: what the demand so far will use up in seven
// eighths of lifetime, but no more than half of what the store has left. A size of cost or less means that a block is of no use. With each
// block what was measured before comes to weigh half, and so it does when it is older than a lifetime.
func (m *demand) size(now time.Time, cost int64, lifetime time.Duration) int64 {
	elapsed := max(1, now.Sub(m.since).Microseconds())
	extra, _ := algorithm.MulDiv(m.tokens, lifetime.Microseconds()/8*7, elapsed)
	extra = min(extra, algorithm.Mul(max(1, m.extra), growth))
	n := min(algorithm.Add(cost, extra), m.rest/2)
	if n > cost {
		m.extra = n - cost
	}
	if n > cost || now.Sub(m.since) > lifetime {
		m.since, m.tokens = now.Add(-now.Sub(m.since)/2), m.tokens/2
	}
	return n
}

// learn notes what the store said.
func (m *demand) learn(allowed bool, remaining int64) {
	if m.rest = remaining; !allowed {
		m.rest, m.extra = 0, 0
	}
}
