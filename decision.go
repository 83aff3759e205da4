package headgate

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Bounds of one request.
const (
	MaxKey     = 1024 // longest Charge.Key, in bytes
	MaxCharges = 128  // most charges in one Take, Refund or Reset
)

// A Charge asks for Cost tokens of one key under one limit.
type Charge struct {
	// Key says who pays. Required, at most MaxKey bytes, any bytes. Two different keys never share a counter.
	Key string
	// Cost is the number of tokens asked for. 0 = look only: nothing changes. Negative is invalid. Above the limit's capacity it
	// is denied with RetryAfter = Never. Refund gives back Cost tokens; Reset does not look at it.
	Cost int64
	// Limit is what the key is held to.
	Limit Limit
}

// Validate returns nil, or an error that matches [ErrInvalidCharge] or, for its limit, [ErrInvalidLimit]. It never carries the key.
func (c Charge) Validate() error { return c.check() }

// sound says whether c is valid but for its limit.
func (c *Charge) sound() bool { return c.Key != "" && len(c.Key) <= MaxKey && c.Cost >= 0 }

// check is Validate without a copy.
func (c *Charge) check() error {
	switch {
	case c.Key == "":
		return fmt.Errorf("%w: empty key, want who pays", ErrInvalidCharge)
	case len(c.Key) > MaxKey:
		return fmt.Errorf("%w: key of %d bytes, want at most %d; use a digest of it", ErrInvalidCharge, len(c.Key), MaxKey)
	case c.Cost < 0:
		return fmt.Errorf("%w: cost %d, want 0 or more", ErrInvalidCharge, c.Cost)
	}
	return c.Limit.check()
}

// Never is the RetryAfter of a request that cannot succeed however long it waits: its cost is above the capacity.
const Never time.Duration = math.MaxInt64

// A Source says who decided.
type Source uint8

const (
	// FromStore is a decision of the store: exact. The zero value.
	FromStore Source = iota
	// FromLocal is a decision in process, at limit / replicas, while the store cannot answer: [FailLocal].
	FromLocal
	// FromOpen let the request pass undecided, since the store could not answer: [FailOpen].
	FromOpen
	// FromClosed denied the request undecided, since the store could not answer: [FailClosed].
	FromClosed
	// FromLease is a grant in process, out of tokens that the store has granted to this process before: package lease. It is never a denial.
	FromLease
	// FromCache is a denial in process, of a store's that still holds: package denial.
	FromCache

	// Sources is the number of the values above, for who keeps something by each. A later version may have more.
	Sources int = iota
)

var sourceNames = [Sources]string{"store", "local", "open", "closed", "lease", "cache"}

// String returns "store", "local", "open", "closed", "lease" or "cache".
func (s Source) String() string {
	if int(s) < len(sourceNames) {
		return sourceNames[s]
	}
	return "source(" + strconv.Itoa(int(s)) + ")"
}

// A Decision is the answer to a Take. A denial is a Decision, never an error.
type Decision struct {
	// Allowed says whether the request may go on. If so, every charge was made; if not, none was.
	Allowed bool
	// Limit is the binding limit: the one that denied (of several, that with the longest wait), else the one with least left.
	Limit Limit
	// Remaining is the number of whole tokens left under Limit after this decision, exact at its instant.
	Remaining int64
	// RetryAfter is 0 when allowed. Otherwise the same request, alone, succeeds after this long and not before. Never = it cannot
	// succeed. With Source FromClosed it is a hint of one second: nobody knows.
	RetryAfter time.Duration
	// ResetAfter is the time until Limit is as if this key had never used it.
	ResetAfter time.Duration
	// Source says who decided.
	Source Source
	// At is the instant of the decision by the clock of the store, in microseconds; zero where no store decided. [WithTakenAt] takes it.
	At time.Time
	// States holds each charge's own state, in the order of the charges; nil when there was one. The caller owns it.
	States []State
}

// A State is what one charge of a request found: the fields mean what they mean in [Decision], for this charge alone.
type State struct {
	Limit      Limit
	Allowed    bool // this charge alone had room
	Remaining  int64
	RetryAfter time.Duration
	ResetAfter time.Duration
}

// Decide makes the Decision for a request out of the state of each of its charges, by the rules of [Decision.Limit]: for those who
// write a [Store]. It keeps states, unless there is one. It needs at least one; for none it returns the zero Decision, a denial.
func Decide(at time.Time, states []State) Decision {
	if len(states) == 0 {
		return Decision{}
	}
	allowed, binding := true, 0
	for i := range states {
		s, b := &states[i], &states[binding]
		switch {
		case allowed && !s.Allowed:
			allowed, binding = false, i
		case allowed && s.Remaining < b.Remaining, !s.Allowed && s.RetryAfter > b.RetryAfter:
			binding = i
		}
	}
	b := &states[binding]
	d := Decision{Allowed: allowed, Limit: b.Limit, Remaining: b.Remaining, RetryAfter: b.RetryAfter, ResetAfter: b.ResetAfter, At: at}
	if len(states) > 1 {
		d.States = states
	}
	return d
}
