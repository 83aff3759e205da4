package headgate

import (
	"context"
	"strconv"
	"time"
)

// A FailureMode says what a caller gets when the store cannot answer. It depends on what the limit protects, so it is chosen, and
// every Decision says by its Source that it was used.
type FailureMode uint8

const (
	// FailClosed denies, with Source FromClosed, and returns the error: for what must never get more than its limit. The zero value.
	FailClosed FailureMode = iota
	// FailOpen allows, with Source FromOpen and no error: for what is better unlimited than away.
	FailOpen
	// FailLocal decides in process at limit / replicas, with Source FromLocal and no error. Count and Burst are divided and rounded
	// down, but to no less than 1 where the limit allows anything, so during an outage n replicas together let through at most the
	// limit, or n tokens per Period where the limit is below n. What was used before the outage is not known to it.
	FailLocal
)

var failureModeNames = [...]string{"closed", "open", "local"}

// String returns "closed", "open" or "local".
func (m FailureMode) String() string {
	if int(m) < len(failureModeNames) {
		return failureModeNames[m]
	}
	return "mode(" + strconv.Itoa(int(m)) + ")"
}

// undecidedRetry is the hint given to those whom FailClosed turns away.
const undecidedRetry = time.Second

// fail answers in the store's place.
func (l *Limiter) fail(ctx context.Context, cause error, first Charge, more []Charge) (Decision, error) {
	l.outage.report(ctx, l.cfg.Logger, l.cfg.OnStoreError, cause)
	switch l.cfg.OnStoreError {
	case FailOpen:
		return undecided(FromOpen, first), nil
	case FailLocal:
		return l.failLocal(first, more), nil
	default:
		return undecided(FromClosed, first), cause
	}
}

// undecided is the Decision of nobody.
func undecided(source Source, first Charge) Decision {
	d := Decision{Allowed: source == FromOpen, Limit: first.Limit, Source: source}
	if !d.Allowed {
		d.RetryAfter = undecidedRetry
	}
	return d
}

// failLocal decides in process, at this replica's share of each limit. The charges were found valid.
func (l *Limiter) failLocal(first Charge, more []Charge) Decision {
	replicas := l.replicas()
	mine := share(first, replicas)
	var d Decision
	_ = l.backup.take(&d, &mine, shareAll(more, replicas)) // nobody closes it
	for i := range d.States {
		s := &d.States[i]
		s.Limit.Name, s.RetryAfter = ownName(s.Limit.Name), hint(s.RetryAfter, chargeAt(i, first, more))
	}
	if d.States != nil { // other waits may make another limit the binding one
		d = Decide(time.Time{}, d.States)
	} else {
		d.Limit.Name, d.RetryAfter = ownName(d.Limit.Name), hint(d.RetryAfter, first)
	}
	d.Source, d.At = FromLocal, time.Time{}
	return d
}

// refundLocal gives back what failLocal has just granted.
func (l *Limiter) refundLocal(first Charge, more []Charge) {
	replicas := l.replicas()
	mine := share(first, replicas)
	_ = l.backup.refund(&mine, shareAll(more, replicas), 0) // nobody closes it
}

func (l *Limiter) replicas() int64 {
	if l.cfg.Replicas == nil {
		return 1
	}
	return int64(max(1, l.cfg.Replicas()))
}

// chargeAt returns charge i of a request.
func chargeAt(i int, first Charge, more []Charge) Charge {
	if i == 0 {
		return first
	}
	return more[i-1]
}

func shareAll(charges []Charge, replicas int64) []Charge {
	shares := make([]Charge, len(charges))
	for i, c := range charges {
		shares[i] = share(c, replicas)
	}
	return shares
}

// share is c at limit / replicas. Its limit keeps one identity while the number of replicas changes: its own, marked.
func share(c Charge, replicas int64) Charge {
	mark := "n"
	if c.Limit.Name == "" {
		mark = "t" + c.Limit.String()
	}
	if c.Limit.Count > 0 {
		c.Limit.Count = max(1, c.Limit.Count/replicas)
	}
	if c.Limit.Burst > 0 {
		c.Limit.Burst = max(1, c.Limit.Burst/replicas)
	}
	c.Limit.Name = mark + c.Limit.Name
	return c
}

// ownName undoes the mark of share.
func ownName(name string) string {
	if name[0] == 't' {
		return ""
	}
	return name[1:]
}

// hint replaces a Never that is true of the share alone and not of the limit of c.
func hint(d time.Duration, c Charge) time.Duration {
	if d == Never && c.Cost <= c.Limit.Capacity() {
		return undecidedRetry
	}
	return d
}
