package headgate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Wait blocks until n tokens of key are granted under all of the limiter's limits, or ctx ends. Callers of Wait on this Limiter get
// their tokens in the order of arrival, key by key; those who call Allow meanwhile are not held back by them. n = 0 returns at once.
//
// The error is nil if and only if the tokens were granted. It matches [ErrExceedsCapacity] when no wait would do,
// [ErrWouldExceedDeadline] as soon as it is clear that ctx ends first, the error of ctx when that ended, and otherwise it is one of
// [Limiter.Allow]. With an error nothing is charged: what was granted as ctx ended is given back. (Where the store itself failed, and
// with a negative [Config.Timeout] where ctx ended while it was asked, nobody knows what was charged.)
//
// Every attempt is a decision, and the [Observer] sees it as one.
func (l *Limiter) Wait(ctx context.Context, key string, n int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if n == 0 {
		return nil
	}
	list, err := l.charges(key, n)
	if err != nil {
		return err
	}
	defer l.release(list)
	return l.wait(ctx, key, (*list)[0], (*list)[1:])
}

// WaitCharges is [Limiter.Wait] for charges whose keys and limits are chosen per call, as [Limiter.Take] has them. line is the key in
// whose line the caller stands: those who name the same one are served in the order of arrival, whatever they ask for. It has that order
// in common with Wait.
func (l *Limiter) WaitCharges(ctx context.Context, line string, first Charge, more ...Charge) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return l.wait(ctx, line, first, more)
}

func (l *Limiter) wait(ctx context.Context, line string, first Charge, more []Charge) error {
	if !hopeless(first) && !slices.ContainsFunc(more, hopeless) { // otherwise no turn is worth waiting for
		turn := l.lines.Join(line)
		defer turn.Leave()
		select {
		case <-turn.Up():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for {
		d, err := l.TakeOrGiveBack(ctx, first, more...)
		switch {
		case err != nil:
			return err
		case d.Allowed:
			return nil
		case d.RetryAfter == Never:
			return fmt.Errorf("%w: a cost above the capacity of %v", ErrExceedsCapacity, d.Limit)
		}
		if err := sleep(ctx, d.RetryAfter); err != nil {
			return err
		}
	}
}

// hopeless says whether c will never be granted.
func hopeless(c Charge) bool { return c.Cost > c.Limit.Capacity() }

// TakeOrGiveBack is [Limiter.Take] for those who may give up while they ask, which leaves nothing behind. The end of ctx does not
// interrupt the store, whose answer would then be unknown; the limiter's own time-out does. What was granted when ctx has ended is given
// back, and the error is that of ctx. (With a negative [Config.Timeout] the end of ctx does interrupt, and nobody knows what was charged.)
func (l *Limiter) TakeOrGiveBack(ctx context.Context, first Charge, more ...Charge) (Decision, error) {
	asking := ctx
	if l.bound > 0 {
		asking = context.WithoutCancel(ctx)
	}
	d, err := l.Take(asking, first, more...)
	if ctx.Err() == nil || err != nil {
		return d, err
	}
	if d.Allowed {
		if err := l.GiveBack(context.WithoutCancel(ctx), d, first, more...); err != nil {
			return d, errors.Join(ctx.Err(), err)
		}
	}
	return d, ctx.Err()
}

// GiveBack undoes the Take that was granted with d, where it was charged: in the store, into the windows of that instant and no others,
// or in process. The charges are those of the Take. A d that was not allowed, or that nobody decided, gives nothing back. Errors are
// those of [Limiter.Refund].
func (l *Limiter) GiveBack(ctx context.Context, d Decision, first Charge, more ...Charge) error {
	if !d.Allowed {
		return nil
	}
	switch d.Source {
	case FromStore, FromLease:
		return storeError("refund", l.store.Refund(WithTakenAt(ctx, d.At), first, more...))
	case FromLocal:
		if err := CheckCharges(first, more); err != nil {
			return err
		}
		l.refundLocal(first, more)
	}
	return nil
}

// sleep waits for d. It does not begin a wait that ctx's deadline will cut short.
func sleep(ctx context.Context, d time.Duration) error {
	if deadline, ok := ctx.Deadline(); ok {
		if left := time.Until(deadline); left < d {
			return fmt.Errorf("%w: %v to wait, %v left (%w)", ErrWouldExceedDeadline, d, left, context.DeadlineExceeded)
		}
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
