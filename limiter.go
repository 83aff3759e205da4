package headgate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/internal/line"
)

// DefaultTimeout bounds a decision where [Config.Timeout] is 0.
const DefaultTimeout = 50 * time.Millisecond

// Config configures a [Limiter]. It is copied; the zero value is good.
type Config struct {
	// OnStoreError is what a caller gets when the store cannot answer. The zero value is [FailClosed].
	OnStoreError FailureMode
	// Timeout bounds each decision and each Refund and Reset of a store other than a [Memory], in addition to the caller's context.
	// 0 = DefaultTimeout, negative = none. The store gets four fifths of it. A store that is [Guarded] has its own instead.
	Timeout time.Duration
	// Breaker says when to stop asking a store that does not answer. A [Memory] has none, and a Guarded store its own.
	Breaker BreakerConfig
	// Replicas returns the number of live replicas that share the limits: [FailLocal] divides by it. nil = 1; less than 1 counts as 1.
	// It is called for each local decision, by many at once.
	Replicas func() int
	// Observer is told of every decision, and, if it is a [BreakerObserver], of every change of the breaker; nil = nobody.
	Observer Observer
	// Logger gets at most one line a second while the store cannot answer. nil = slog.Default().
	Logger *slog.Logger
}

// A Limiter holds callers to limits through a [Store]. Make one with [New]; it is safe for concurrent use and needs no Close: it keeps
// no goroutine and does not close its store.
type Limiter struct {
	store  Store
	limits []Limit
	cfg    Config
	bound  time.Duration // deadline of a decision; 0 = none
	local  bool          // store is a Memory: no deadline, no failure
	backup *Memory       // decides for FailLocal
	outage outage
	lines  line.Lines
	lists  sync.Pool // *[]Charge for AllowN under several limits
}

// New returns a Limiter that holds every key to all of limits at once. Without limits only [Limiter.Take] decides, with limits per
// call. Errors match [ErrInvalidConfig], [ErrInvalidLimit].
func New(store Store, limits []Limit, cfg Config) (*Limiter, error) {
	if store == nil {
		return nil, fmt.Errorf("%w: no store, want one such as NewMemory makes", ErrInvalidConfig)
	}
	if cfg.OnStoreError > FailLocal {
		return nil, fmt.Errorf("%w: unknown OnStoreError %d", ErrInvalidConfig, cfg.OnStoreError)
	}
	if len(limits) > MaxCharges {
		return nil, fmt.Errorf("%w: %d limits, want at most %d", ErrInvalidConfig, len(limits), MaxCharges)
	}
	seen := make(map[string]bool, len(limits))
	for i, limit := range limits {
		if err := limit.Validate(); err != nil {
			return nil, fmt.Errorf("limit %d: %w", i+1, err)
		}
		if id := limit.ID(); seen[id] {
			return nil, fmt.Errorf("%w: limit %d shares its counter with an earlier one, want another name or other numbers", ErrInvalidConfig, i+1)
		} else {
			seen[id] = true
		}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	l := &Limiter{store: store, limits: append([]Limit(nil), limits...), cfg: cfg}
	if err := l.guard(); err != nil {
		return nil, err
	}
	if cfg.OnStoreError == FailLocal && !l.local {
		backup, err := NewMemory(MemoryConfig{})
		if err != nil {
			return nil, err
		}
		l.backup = backup
	}
	l.lists.New = func() any { return new([]Charge) }
	return l, nil
}

// guard puts a Guard around the store, unless it needs none or is one.
func (l *Limiter) guard() error {
	if _, l.local = l.store.(*Memory); l.local {
		return nil
	}
	if store, ok := l.store.(Guarded); ok && store.Guard() != nil {
		l.bound = max(0, store.Guard().timeout)
		return nil
	}
	guard, err := NewGuard(l.store, GuardConfig{Timeout: l.cfg.Timeout, Breaker: l.cfg.Breaker, OnChange: l.breakerChanged})
	if err != nil {
		return err
	}
	l.store, l.bound = guard, max(0, guard.timeout)
	return nil
}

func (l *Limiter) breakerChanged(from, to BreakerState) {
	if o, ok := l.cfg.Observer.(BreakerObserver); ok {
		o.ObserveBreaker(from, to)
	}
}

// Limits returns the limits that New was given. The caller owns the slice.
func (l *Limiter) Limits() []Limit { return append([]Limit(nil), l.limits...) }

// Allow asks for one token of key under all of the limiter's limits, and does not wait. This is the method most callers want.
//
// The error is nil unless key is invalid ([ErrInvalidCharge]), ctx ended, or the store could not answer and the failure mode is
// [FailClosed] ([ErrStore]). Whatever the error, the Decision says what to do.
func (l *Limiter) Allow(ctx context.Context, key string) (Decision, error) {
	return l.AllowN(ctx, key, 1)
}

// AllowN is [Limiter.Allow] for n tokens: all of them or none. n = 0 looks and changes nothing; negative n is an error.
func (l *Limiter) AllowN(ctx context.Context, key string, n int64) (Decision, error) {
	if len(l.limits) == 1 {
		return l.Take(ctx, Charge{Key: key, Cost: n, Limit: l.limits[0]})
	}
	list, err := l.charges(key, n)
	if err != nil {
		return Decision{}, err
	}
	defer l.release(list)
	return l.Take(ctx, (*list)[0], (*list)[1:]...)
}

// Take decides charges whose keys and limits are chosen per call: plans, hierarchies, costs. All are charged or none is.
// Errors are those of [Limiter.Allow], and [ErrInvalidLimit].
func (l *Limiter) Take(ctx context.Context, first Charge, more ...Charge) (Decision, error) {
	if l.cfg.Observer == nil {
		d, err, _ := l.decide(ctx, first, more)
		return d, err
	}
	start := time.Now()
	d, err, cause := l.decide(ctx, first, more)
	o := Observation{Decision: d, Cost: first.Cost, Elapsed: time.Since(start), Err: cause}
	for _, c := range more {
		o.Cost = max(o.Cost, c.Cost)
	}
	l.cfg.Observer.Observe(ctx, o)
	return d, err
}

// Peek tells what key has left, and changes nothing. Errors are those of [Limiter.Allow].
func (l *Limiter) Peek(ctx context.Context, key string) (Decision, error) {
	return l.AllowN(ctx, key, 0)
}

// Refund gives back n tokens of key under all of the limiter's limits; see [Store] for what it will not give back, and [WithTakenAt].
// Errors match [ErrStore] or [ErrInvalidCharge]; after an error it is unknown whether the tokens were given back.
func (l *Limiter) Refund(ctx context.Context, key string, n int64) error {
	return l.change(ctx, "refund", key, n, l.store.Refund)
}

// Reset forgets what key has used under all of the limiter's limits. Errors are those of [Limiter.Refund].
func (l *Limiter) Reset(ctx context.Context, key string) error {
	return l.change(ctx, "reset", key, 0, l.store.Reset)
}

func (l *Limiter) change(ctx context.Context, op, key string, n int64, do func(context.Context, Charge, ...Charge) error) error {
	list, err := l.charges(key, n)
	if err != nil {
		return err
	}
	defer l.release(list)
	return storeError(op, do(ctx, (*list)[0], (*list)[1:]...))
}

// charges lists one charge for each of the limiter's limits. Who gets the list releases it.
func (l *Limiter) charges(key string, n int64) (*[]Charge, error) {
	if len(l.limits) == 0 {
		return nil, fmt.Errorf("%w: the limiter was made without limits, want Take", ErrInvalidCharge)
	}
	list := l.lists.Get().(*[]Charge)
	for _, limit := range l.limits {
		*list = append(*list, Charge{Key: key, Cost: n, Limit: limit})
	}
	return list, nil
}

func (l *Limiter) release(list *[]Charge) {
	clear(*list)
	*list = (*list)[:0]
	l.lists.Put(list)
}

// decide asks the store and, where it cannot answer, the failure mode. cause is why the store could not.
func (l *Limiter) decide(ctx context.Context, first Charge, more []Charge) (d Decision, err, cause error) {
	if l.local {
		if d, err = l.store.Take(ctx, first, more...); errors.Is(err, ErrStore) { // it was closed
			d = undecided(FromClosed, first)
		}
		return d, err, err
	}
	if d, err = l.store.Take(ctx, first, more...); err == nil {
		return d, nil, nil
	}
	if !errors.Is(err, ErrStore) {
		return Decision{}, err, err
	}
	if ctx.Err() != nil { // the caller gave up: that is no outage, and nobody waits for the answer
		return undecided(FromClosed, first), err, err
	}
	d, shown := l.fail(ctx, err, first, more)
	return d, shown, err
}

// storeError makes every error of a store match ErrStore, unless the request itself was at fault.
func storeError(op string, err error) error {
	if err == nil || errors.Is(err, ErrStore) || errors.Is(err, ErrInvalidCharge) || errors.Is(err, ErrInvalidLimit) {
		return err
	}
	return &StoreError{Op: op, Err: err}
}

// outage holds back the log while the store cannot answer.
type outage struct {
	last atomic.Int64 // Unix nanoseconds of the last line
	held atomic.Int64 // failures since then that had no line
}

// report writes a line, unless there was one within a second. A clock that steps back does not silence it.
func (o *outage) report(ctx context.Context, log *slog.Logger, mode FailureMode, err error) {
	now := time.Now().UnixNano()
	last := o.last.Load()
	if since := now - last; since >= 0 && since < int64(time.Second) || !o.last.CompareAndSwap(last, now) {
		o.held.Add(1)
		return
	}
	log.LogAttrs(ctx, slog.LevelError, "headgate: store cannot answer",
		slog.String("failure_mode", mode.String()), slog.Int64("not_logged", o.held.Swap(0)), slog.Any("error", err))
}
