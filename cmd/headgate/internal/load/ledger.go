package load

import (
	"math"
	"time"
)

// A grant is a request that was allowed, in whole microseconds since the start of the run: the limiter decided at some instant from started to
// started+took. What rounding leaves out is far less than ClockSlack.
type grant struct {
	started int64
	key     uint32
	took    uint32
}

func (g grant) ended() int64 { return g.started + int64(g.took) }

func newGrant(key int, started, ended time.Duration) grant {
	return grant{started: started.Microseconds(), key: uint32(key), took: uint32(min((ended - started).Microseconds(), math.MaxUint32))} // MaxTimeout is less
}

// ledgerPage is so many grants that a new page is seldom needed, and so few that making one takes no time.
const ledgerPage = 1 << 14

// A ledger holds grants. It grows by pages, so that nothing is copied while requests wait.
type ledger struct{ pages [][]grant }

func (l *ledger) add(s sample) {
	last := len(l.pages) - 1
	if last < 0 || len(l.pages[last]) == ledgerPage {
		l.pages = append(l.pages, make([]grant, 0, ledgerPage))
		last++
	}
	l.pages[last] = append(l.pages[last], newGrant(s.key, s.started, s.ended))
}

// all returns the grants in one slice.
func (l *ledger) all() []grant {
	var out []grant
	for _, page := range l.pages {
		out = append(out, page...)
	}
	return out
}
