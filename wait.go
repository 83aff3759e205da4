package headgate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
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
	if !slices.ContainsFunc(l.limits, func(limit Limit) bool { return n > limit.Capacity() }) { // otherwise no turn is worth waiting for
		leave, err := l.lines.enter(ctx, key)
		if err != nil {
			return err
		}
		defer leave()
	}
	for {
		d, err := l.attempt(ctx, key, n)
		switch {
		case err != nil:
			return err
		case d.Allowed:
			return nil
		case d.RetryAfter == Never:
			return fmt.Errorf("%w: %d asked of %v", ErrExceedsCapacity, n, d.Limit)
		}
		if err := sleep(ctx, d.RetryAfter); err != nil {
			return err
		}
	}
}

// attempt is AllowN with a known outcome: the end of ctx does not interrupt it, the limiter's own deadline does. What it was granted
// when ctx has ended it gives back.
func (l *Limiter) attempt(ctx context.Context, key string, n int64) (Decision, error) {
	asking := ctx
	if l.bound > 0 {
		asking = context.WithoutCancel(ctx)
	}
	d, err := l.AllowN(asking, key, n)
	if ctx.Err() == nil || err != nil {
		return d, err
	}
	if d.Allowed {
		if err := l.giveBack(context.WithoutCancel(ctx), d, key, n); err != nil {
			return d, errors.Join(ctx.Err(), err)
		}
	}
	return d, ctx.Err()
}

// giveBack undoes the AllowN that was granted with d, where it was charged.
func (l *Limiter) giveBack(ctx context.Context, d Decision, key string, n int64) error {
	switch d.Source {
	case FromStore:
		return l.Refund(WithTakenAt(ctx, d.At), key, n)
	case FromLocal:
		list, err := l.charges(key, n)
		if err != nil {
			return err
		}
		defer l.release(list)
		l.refundLocal((*list)[0], (*list)[1:])
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

// lines are the queues of those who wait, one for each key that anybody waits for.
type lines struct {
	mu     sync.Mutex
	byKey  map[string]*line
	unused *line // one kept for reuse
}

// A line is a queue: its head is the one whose turn it is.
type line struct {
	turns []chan struct{} // closed when it is that waiter's turn; the head's is
}

// enter queues the caller for key and returns when it is its turn. leave must be called when done.
func (q *lines) enter(ctx context.Context, key string) (leave func(), err error) {
	turn := make(chan struct{})
	q.mu.Lock()
	if q.byKey == nil {
		q.byKey = make(map[string]*line)
	}
	l := q.byKey[key]
	if l == nil {
		if l, q.unused = q.unused, nil; l == nil {
			l = new(line)
		}
		q.byKey[key] = l
	}
	l.turns = append(l.turns, turn)
	if len(l.turns) == 1 {
		close(turn)
	}
	q.mu.Unlock()

	leave = func() { q.leave(key, l, turn) }
	select {
	case <-turn:
		return leave, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}

// leave takes turn out of the line, wherever it stands, and lets a new head have its turn.
func (q *lines) leave(key string, l *line, turn chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range l.turns {
		if l.turns[i] != turn {
			continue
		}
		l.turns = append(l.turns[:i], l.turns[i+1:]...)
		if i == 0 && len(l.turns) > 0 {
			close(l.turns[0])
		}
		break
	}
	if len(l.turns) == 0 {
		delete(q.byKey, key)
		q.unused = l
	}
}
