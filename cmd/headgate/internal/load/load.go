// Package load puts load on a limiter and compares what it lets through with what its limit permits.
//
// The model is open: requests fall due at instants that are fixed beforehand, whether or not earlier ones have been answered. Latency is
// counted from the instant at which a request was due, so that a limiter that stalls is seen to stall by all who would have come
// meanwhile. What cannot be started, since too many requests are under way, is counted as dropped and never sent later.
package load

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate"
)

// A Verdict is what became of a request.
type Verdict uint8

const (
	// Allowed and Denied are decisions of the limiter.
	Allowed Verdict = iota
	Denied
	// Failed is anything else: whether tokens were taken is unknown.
	Failed
)

// An Outcome is the answer to one request. Kind groups failures, such as "timeout" or "status 503"; Err, which may be nil, is an example of it.
type Outcome struct {
	Verdict Verdict
	Kind    string
	Err     error
}

// A Target is what is put under load.
type Target interface {
	// Do sends one request of one token for the key of that number and returns when it is answered, or soon after ctx has ended. It is
	// called by many at once.
	Do(ctx context.Context, key int) Outcome
}

// Bounds of a [Config].
const (
	MaxRequests = 20_000_000 // of one run: each that is allowed is remembered
	MaxKeys     = 1_000_000
	MaxTimeout  = time.Hour
)

// A Config says what to do. It is copied.
type Config struct {
	// Target is required.
	Target Target
	// Arrivals is required: when requests are due.
	Arrivals Arrivals
	// Keys picks the key of each request; nil = always key 0.
	Keys Keys
	// KeyCount is the number of keys that Keys picks from: 0 = 1, at most MaxKeys.
	KeyCount int
	// Warmup comes before what is measured: its requests are sent and not counted. 0 = none.
	Warmup time.Duration
	// Duration is how long requests fall due after the warm-up: above 0.
	Duration time.Duration
	// MaxInFlight bounds the requests under way: at least 1. What is due while so many are, is dropped.
	MaxInFlight int
	// Timeout is for one request, from when it is sent: above 0, at most MaxTimeout.
	Timeout time.Duration
	// Limit is what each key is held to; nil = unknown, and then nothing is compared.
	Limit *headgate.Limit
	// Fresh says that no key was used before the run.
	Fresh bool
	// Progress is called about once a second while the run lasts, by one goroutine; nil = nobody looks.
	Progress func(Progress)
	// Sleep waits for short times; nil = as exactly as the system can. Tests with a clock of their own pass time.Sleep.
	Sleep func(time.Duration)
}

func (c Config) check() error {
	switch {
	case c.Target == nil, c.Arrivals == nil:
		return errors.New("no target or no arrivals")
	case c.KeyCount < 0 || c.KeyCount > MaxKeys:
		return fmt.Errorf("%d keys, want 1 to %d", c.KeyCount, MaxKeys)
	case c.Warmup < 0 || c.Duration <= 0:
		return fmt.Errorf("warm-up %v and duration %v, want at least 0 and more than 0", c.Warmup, c.Duration)
	case c.MaxInFlight < 1:
		return fmt.Errorf("%d requests in flight, want at least 1", c.MaxInFlight)
	case c.Timeout <= 0 || c.Timeout > MaxTimeout:
		return fmt.Errorf("time-out %v, want more than 0 and at most %v", c.Timeout, MaxTimeout)
	}
	return nil
}

// Run puts the load on the target, until it is over or ctx ends, and reports what was measured. When ctx ends, requests under way have a
// moment to finish. Nothing is left running afterwards.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	g := newGenerator(cfg)
	stop := g.showProgress()
	elapsed := g.generate(ctx)
	g.drain(ctx)
	stop()
	r := g.recorder.report(elapsed - cfg.Warmup)
	r.Interrupted = ctx.Err() != nil
	if cfg.Limit != nil {
		fresh := cfg.Fresh && cfg.Warmup == 0 && r.Failed == 0 && r.Unfinished == 0
		r.Audit = audit(*cfg.Limit, fresh, g.recorder.grants.all(), int64(g.asked), g.recorder.lasted)
	}
	return r, nil
}
