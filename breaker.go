package headgate

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// A BreakerState says whether requests reach the store.
type BreakerState uint8

const (
	// BreakerClosed lets every request through to the store. The zero value.
	BreakerClosed BreakerState = iota
	// BreakerOpen lets none through: each is answered by the failure mode at once.
	BreakerOpen
	// BreakerHalfOpen is BreakerOpen while a probe asks the store whether it answers again.
	BreakerHalfOpen
)

var breakerStateNames = [...]string{"closed", "open", "half-open"}

// String returns "closed", "open" or "half-open".
func (s BreakerState) String() string {
	if int(s) < len(breakerStateNames) {
		return breakerStateNames[s]
	}
	return "breaker(" + strconv.Itoa(int(s)) + ")"
}

// Defaults of [BreakerConfig].
const (
	DefaultBreakerFailures = 5
	DefaultBreakerRatio    = 0.5
	DefaultBreakerCooldown = 100 * time.Millisecond
	DefaultBreakerMaxWait  = time.Second
)

// breakerSample is how many failures there must be before their ratio says anything, and breakerWindow the time they are counted in.
const (
	breakerSample = 20
	breakerWindow = 10 * time.Second
)

// BreakerConfig says when a [Guard] stops asking a store that does not answer, and when it tries again. The zero value is good.
type BreakerConfig struct {
	// Failures in a row open the breaker. 0 = DefaultBreakerFailures, negative = the breaker never opens.
	Failures int
	// Ratio opens it as well: that share of the decisions since the first failure of the last ten seconds failed, and at least twenty
	// did. 0 = DefaultBreakerRatio; above 1 = never; negative is invalid.
	Ratio float64
	// Cooldown is how long it stays open before the first probe. It doubles with each probe that fails, up to MaxCooldown. 0 =
	// DefaultBreakerCooldown; negative is invalid.
	Cooldown time.Duration
	// MaxCooldown bounds Cooldown and so how long after the store's return the first decision of its comes. 0 =
	// DefaultBreakerMaxWait, or Cooldown if that is longer; negative is invalid.
	MaxCooldown time.Duration
}

func (c BreakerConfig) complete() (BreakerConfig, error) {
	if c.Ratio < 0 || c.Ratio != c.Ratio || c.Cooldown < 0 || c.MaxCooldown < 0 {
		return c, fmt.Errorf("%w: breaker with a negative ratio or cooldown, want 0 (= the default) or more", ErrInvalidConfig)
	}
	if c.Failures == 0 {
		c.Failures = DefaultBreakerFailures
	}
	if c.Ratio == 0 {
		c.Ratio = DefaultBreakerRatio
	}
	if c.Cooldown == 0 {
		c.Cooldown = DefaultBreakerCooldown
	}
	if c.MaxCooldown == 0 {
		c.MaxCooldown = DefaultBreakerMaxWait
	}
	c.MaxCooldown = max(c.MaxCooldown, c.Cooldown)
	return c, nil
}

// A breaker counts what became of requests. While it is closed and all goes well it costs two atomic operations.
type breaker struct {
	cfg    BreakerConfig
	state  atomic.Uint32
	inRow  atomic.Int64 // failures since the last success
	total  atomic.Int64 // requests in the window
	change func(from, to BreakerState)

	mu       sync.Mutex
	failed   int64     // in the window
	window   time.Time // its beginning
	cooldown time.Duration
	probeAt  time.Time

	last atomic.Pointer[openError] // what every call gets while it is open
}

// An openError is ErrBreakerOpen together with the failure that the breaker saw last.
type openError struct{ text string }

func (e *openError) Error() string { return e.text }
func (e *openError) Unwrap() error { return ErrBreakerOpen }

// refusal is why a call is not made.
func (b *breaker) refusal() error {
	if e := b.last.Load(); e != nil {
		return e
	}
	return ErrBreakerOpen
}

// admit says whether a request may reach the store, and if not, whether the caller is to probe it.
func (b *breaker) admit(now time.Time) (pass, probe bool) {
	if BreakerState(b.state.Load()) == BreakerClosed {
		return true, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch BreakerState(b.state.Load()) {
	case BreakerClosed:
		return true, false
	case BreakerOpen:
		if !now.Before(b.probeAt) {
			b.set(BreakerHalfOpen)
			return false, true
		}
	}
	return false, false
}

// succeeded counts a request that the store answered.
func (b *breaker) succeeded() {
	b.total.Add(1)
	if b.inRow.Load() != 0 {
		b.inRow.Store(0)
	}
}

// failure counts a request that the store did not answer.
func (b *breaker) failure(now time.Time, err error) {
	if b.cfg.Failures < 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if BreakerState(b.state.Load()) != BreakerClosed {
		return // a straggler
	}
	if now.Sub(b.window) > breakerWindow {
		b.window, b.failed = now, 0
		b.total.Store(0)
	}
	b.failed++
	total := b.total.Add(1)
	inRow := b.inRow.Add(1)
	if inRow >= int64(b.cfg.Failures) || b.failed >= breakerSample && float64(b.failed) >= b.cfg.Ratio*float64(total) {
		b.cooldown = b.cfg.Cooldown
		b.open(now, err)
	}
}

// open opens the breaker until the next probe; b.mu is held.
func (b *breaker) open(now time.Time, err error) {
	b.probeAt = now.Add(b.cooldown)
	b.last.Store(&openError{ErrBreakerOpen.Error() + ": " + err.Error()})
	b.set(BreakerOpen)
}

// probed ends the probe that admit asked for.
func (b *breaker) probed(now time.Time, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		b.cooldown = min(2*b.cooldown, b.cfg.MaxCooldown)
		b.open(now, err)
		return
	}
	b.window = time.Time{}
	b.inRow.Store(0)
	b.set(BreakerClosed)
}

// set changes the state; b.mu is held.
func (b *breaker) set(to BreakerState) {
	if from := BreakerState(b.state.Swap(uint32(to))); from != to && b.change != nil {
		b.change(from, to)
	}
}
