package history

import (
	"math/big"
	"slices"
	"time"

	"github.com/headgate/headgate"
)

// A ledger holds what was granted to each counter while nothing but grants happened to it and the clock ran forward, to hold it to the
// guarantee of its algorithm over every interval. It relies on no model.
type ledger map[string]*account

type account struct {
	limit  headgate.Limit
	begun  bool // by a grant to a key never seen
	grants []grant
	before bool // something was granted before the account was opened
}

type grant struct {
	at time.Time
	n  int64
}

func (l ledger) add(c headgate.Charge, now time.Time) {
	a := l[name(c)]
	if a == nil {
		a = &account{}
		l[name(c)] = a
	}
	if len(a.grants) == 0 {
		a.limit, a.begun = c.Limit, !a.before
	}
	a.before = true
	a.grants = append(a.grants, grant{now, c.Cost})
}

// forget checks the accounts of the charges and opens them anew; with reset, as of keys never seen.
func (l ledger) forget(p *player, charges []headgate.Charge, reset bool) {
	for _, c := range charges {
		if a := l[name(c)]; a != nil {
			a.check(p)
			a.grants = a.grants[:0]
			if reset {
				a.before = false
			}
		}
	}
}

func (l ledger) forgetAll(p *player) {
	l.checkAll(p)
	for _, a := range l {
		a.grants = a.grants[:0]
	}
}

func (l ledger) checkAll(p *player) {
	for _, a := range l {
		a.check(p)
	}
}

func (a *account) check(p *player) {
	if len(a.grants) == 0 {
		return
	}
	for from := range a.grants {
		sum := new(big.Int)
		for to := from; to < len(a.grants); to++ {
			sum.Add(sum, big.NewInt(a.grants[to].n))
			if most := a.most(a.grants[to].at.Sub(a.grants[from].at)); most != nil && sum.Cmp(most) > 0 {
				p.fail("%v granted %v from %v to %v, want at most %v", a.limit, sum, a.grants[from].at, a.grants[to].at, most)
			}
		}
	}
	a.checkWindows(p)
}

// most returns the most that may be granted in an interval that takes d from its first grant to its last; nil = any number.
func (a *account) most(d time.Duration) *big.Int {
	count := big.NewInt(a.limit.Count)
	switch a.limit.Algorithm {
	case headgate.TokenBucket:
		filled := new(big.Int).Mul(count, big.NewInt(int64(d)))
		filled.Quo(filled, big.NewInt(int64(a.limit.Period)))
		return filled.Add(filled, big.NewInt(a.limit.Capacity()))
	}
	if d >= a.limit.Period {
		return nil
	}
	twice := new(big.Int).Lsh(count, 1)
	switch a.limit.Algorithm {
	case headgate.SlidingLog:
		return count
	case headgate.SlidingWindow:
		return twice.Sub(twice, big.NewInt(1))
	}
	return twice
}

// checkWindows adds up what was granted in each window.
func (a *account) checkWindows(p *player) {
	var start time.Time
	sum := new(big.Int)
	for _, g := range a.grants {
		begins := g.at.Sub(start) >= a.limit.Period
		switch a.limit.Algorithm {
		case headgate.FixedWindow:
			if !a.begun {
				return
			}
			if begins {
				start = g.at
			}
		case headgate.AlignedWindow, headgate.SlidingWindow:
			if begins {
				start = time.UnixMicro(g.at.UnixMicro() / a.limit.Period.Microseconds() * a.limit.Period.Microseconds())
			}
		default:
			return
		}
		if begins {
			sum.SetInt64(0)
		}
		if sum.Add(sum, big.NewInt(g.n)); sum.Cmp(big.NewInt(a.limit.Count)) > 0 {
			p.fail("%v granted %v in the window from %v on: %v", a.limit, sum, start, slices.Clone(a.grants))
		}
	}
}
