package headgate

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// GuardConfig configures a [Guard]. The zero value is good.
type GuardConfig struct {
	// Timeout bounds each call, in addition to the caller's context. The store gets four fifths of it, so that whoever asked has an answer
	// within it, also on a busy machine. 0 = DefaultTimeout, negative = none.
	Timeout time.Duration
	// Breaker says when to stop asking.
	Breaker BreakerConfig
	// OnChange is told when the breaker changes its state; nil = nobody. It is called while the breaker is locked: it must return
	// soon and not call the Guard.
	OnChange func(from, to BreakerState)
}

// A Guard stands between limiters and a store that may be away. It gives each call a deadline, and when calls fail it stops making them
// for a while: they fail at once with [ErrBreakerOpen]. While it is open, now and then a call sends out a probe, and does not wait for it: a
// charge of the same key under a limit that is the Guard's own, since a store that can be read and not written to decides nothing.
//
// A [Limiter] makes a Guard of its own around any store but a [Memory] or one that is [Guarded]. Make one yourself for limiters that share a store, so
// that they share what is known about it. Safe for concurrent use.
type Guard struct {
	store   Store
	timeout time.Duration
	breaker breaker
}

var _ Store = (*Guard)(nil)

// Guarded is a [Store] that has a [Guard] inside: one that answers some requests in process and asks a guarded store the others. A
// [Limiter] puts no Guard of its own around it, which would keep it from answering while the store does not.
type Guarded interface {
	Store
	// Guard returns the Guard that the store is asked through; nil = there is none.
	Guard() *Guard
}

var _ Guarded = (*Guard)(nil)

// Guard implements [Guarded]: it returns g.
func (g *Guard) Guard() *Guard { return g }

// NewGuard returns a Guard around store. Errors match [ErrInvalidConfig].
func NewGuard(store Store, cfg GuardConfig) (*Guard, error) {
	if store == nil {
		return nil, fmt.Errorf("%w: no store to guard", ErrInvalidConfig)
	}
	limits, err := cfg.Breaker.complete()
	if err != nil {
		return nil, err
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	return &Guard{store: store, timeout: cfg.Timeout, breaker: breaker{cfg: limits, change: cfg.OnChange}}, nil
}

// State returns the state of the breaker.
func (g *Guard) State() BreakerState { return BreakerState(g.breaker.state.Load()) }

// Take implements [Store].
func (g *Guard) Take(ctx context.Context, first Charge, more ...Charge) (Decision, error) {
	var d Decision
	err := g.do(ctx, "take", first, more, func(ctx context.Context) (err error) {
		d, err = g.store.Take(ctx, first, more...)
		return err
	})
	return d, err
}

// Refund implements [Store].
func (g *Guard) Refund(ctx context.Context, first Charge, more ...Charge) error {
	return g.do(ctx, "refund", first, more, func(ctx context.Context) error { return g.store.Refund(ctx, first, more...) })
}

// Reset implements [Store].
func (g *Guard) Reset(ctx context.Context, first Charge, more ...Charge) error {
	return g.do(ctx, "reset", first, more, func(ctx context.Context) error { return g.store.Reset(ctx, first, more...) })
}

// do makes one call of the store, if the breaker lets it.
func (g *Guard) do(ctx context.Context, op string, first Charge, more []Charge, call func(context.Context) error) error {
	if err := CheckCharges(first, more); err != nil {
		return err
	}
	start := time.Now()
	pass, probe := g.breaker.admit(start)
	if probe {
		go g.probe(probeOf(first.Key))
	}
	if !pass {
		return &StoreError{Op: op, Err: g.breaker.refusal()}
	}
	err := g.bounded(ctx, call)
	switch {
	case err == nil || errors.Is(err, ErrInvalidCharge) || errors.Is(err, ErrInvalidLimit):
		g.breaker.succeeded()
		return err
	case ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) && g.timeout > 0 && time.Since(start) >= g.timeout/2:
		g.breaker.failure(time.Now(), err) // a caller who went away, or never had the time, says nothing about the store
	}
	return storeError(op, err)
}

func (g *Guard) bounded(ctx context.Context, call func(context.Context) error) error {
	if g.timeout < 0 {
		return call(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, g.timeout-g.timeout/5)
	defer cancel()
	return call(ctx)
}

// probeTimeout bounds a probe of a Guard without Timeout.
const probeTimeout = time.Second

// probeOf is the charge of a probe for key. Its limit is the same for all, has room for any number of them, and is soon as if never used.
func probeOf(key string) Charge {
	return Charge{Key: key, Cost: 1, Limit: Limit{Name: "headgate probe", Algorithm: FixedWindow, Count: 1_000_000, Period: time.Second}}
}

// probe charges a counter and tells the breaker what came of it. There is at most one under way, for no longer than the time-out.
func (g *Guard) probe(c Charge) {
	timeout := g.timeout
	if timeout < 0 {
		timeout = probeTimeout
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	_, err := g.store.Take(ctx, c)
	g.breaker.probed(time.Now(), err)
}
