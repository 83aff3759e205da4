package headgate

import (
	"context"
	"errors"
	"strconv"
)

// A Cause says why a store made no decision.
type Cause uint8

const (
	// CauseNone is none: the store decided. The zero value.
	CauseNone Cause = iota
	// CauseInvalid is charges that no store is asked about, since they make no sense.
	CauseInvalid
	// CauseAbandoned is a caller who went away before there was a decision.
	CauseAbandoned
	// CauseTimeout is a store that did not answer in time.
	CauseTimeout
	// CauseBreaker is a store that was not asked, since it has not answered lately: [ErrBreakerOpen].
	CauseBreaker
	// CauseFailed is any other failure of the store.
	CauseFailed

	// Causes is the number of the values above, for who keeps something by each. A later version may have more.
	Causes int = iota
)

var causeNames = [Causes]string{"none", "invalid", "abandoned", "timeout", "breaker", "failed"}

// String returns "none", "invalid", "abandoned", "timeout", "breaker" or "failed".
func (c Cause) String() string {
	if int(c) < len(causeNames) {
		return causeNames[c]
	}
	return "cause(" + strconv.Itoa(int(c)) + ")"
}

// Cause returns why the store did not decide. ctx is that of the request.
func (o *Observation) Cause(ctx context.Context) Cause {
	switch {
	case o.Err == nil:
		return CauseNone
	case !errors.Is(o.Err, ErrStore):
		return CauseInvalid
	case errors.Is(ctx.Err(), context.Canceled):
		return CauseAbandoned
	case errors.Is(o.Err, ErrBreakerOpen):
		return CauseBreaker
	case errors.Is(o.Err, context.DeadlineExceeded):
		return CauseTimeout
	}
	return CauseFailed
}
