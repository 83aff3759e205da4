package headgate

import (
	"context"
	"time"
)

// An Observer is told of every decision of a [Limiter]. Its method is called on the caller's goroutine after the decision, by many
// at once: it must be safe for concurrent use and must not block. Panics are not caught.
type Observer interface {
	// Observe takes note of one decision.
	Observe(ctx context.Context, o Observation)
}

// An Observation is one decision as its limiter saw it.
type Observation struct {
	// Decision is what the caller got, whatever its Source.
	Decision Decision
	// Cost is the largest Cost among the request's charges; 0 for a look.
	Cost int64
	// Elapsed is how long the decision took.
	Elapsed time.Duration
	// Err is why the store could not decide, also where the failure mode hid it from the caller; nil if it did.
	Err error
}

// A BreakerObserver is an [Observer] that is also told when the breaker of its limiter changes its state. The method must return soon and
// not call the limiter.
type BreakerObserver interface {
	// ObserveBreaker says that the breaker went from one state to another.
	ObserveBreaker(from, to BreakerState)
}

// ObserverFunc makes an [Observer] of a function.
type ObserverFunc func(ctx context.Context, o Observation)

// Observe calls f.
func (f ObserverFunc) Observe(ctx context.Context, o Observation) { f(ctx, o) }
