package outbound

import (
	"errors"
	"time"

	"github.com/headgate/headgate"
)

// ErrLimited is a request that was not sent, since it would have had to wait longer than it may. The error is a [*LimitedError].
var ErrLimited = errors.New("outbound: limited")

// A LimitedError says that a request was not sent, and when it could be. It matches [ErrLimited], and [headgate.ErrExceedsCapacity] where no
// wait would do. http.Client wraps it in a *url.Error, which errors.As sees through.
type LimitedError struct {
	// RetryAfter is how long to wait: the same request, alone, is allowed after this long. [headgate.Never] = it cannot be. During a
	// pause it is the time until its end, whatever the limits will say then. For a request whose time ran out behind others, it is the
	// time until the first of them is allowed.
	RetryAfter time.Duration
	// Paused says that it is a pause that the upstream asked for, not one of the limits.
	Paused bool
	// Decision is the one that stopped it, without the look at the pause. It is zero for a request whose time ran out behind others.
	Decision headgate.Decision
}

// Error says for how long, and why.
func (e *LimitedError) Error() string {
	why := "no room under the limit"
	if e.Paused {
		why = "the upstream asked for a pause"
	}
	if e.RetryAfter == headgate.Never {
		return ErrLimited.Error() + " for ever: it costs more than the limit ever holds"
	}
	return ErrLimited.Error() + " for " + e.RetryAfter.String() + ": " + why
}

// Unwrap lets errors.Is see ErrLimited.
func (e *LimitedError) Unwrap() []error {
	if e.RetryAfter == headgate.Never {
		return []error{ErrLimited, headgate.ErrExceedsCapacity}
	}
	return []error{ErrLimited}
}
