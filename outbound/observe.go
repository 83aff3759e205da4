package outbound

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"
)

// A Kind says what happened to a request.
type Kind uint8

const (
	// Asked is a request that came, or is to be sent again: it will be Allowed, Limited, or end with an error.
	Asked Kind = iota
	// Waiting is a request that has begun to wait. Duration is how long it will, as far as is known.
	Waiting
	// Allowed is a request that may be sent. Duration is how long it waited.
	Allowed
	// Limited is a request that ended with a [LimitedError]. Duration is its RetryAfter.
	Limited
	// Sent is a request whose header left the building.
	Sent
	// Unsent is an allowed request that provably did not leave, since no connection could be had. What it was charged is given back.
	Unsent
	// Refused is a response with status 429 or 503.
	Refused
	// Paused is a response that asked for a pause. Duration is how long, Field the name of the field that said so.
	Paused
	// Resent is a response in whose place the request is sent again.
	Resent
)

var kindNames = [...]string{"asked", "waiting", "allowed", "limited", "sent", "unsent", "refused", "paused", "resent"}

// String returns the name of the constant in lower case.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "kind(" + strconv.Itoa(int(k)) + ")"
}

// An Event is something that happened to a request. It names no key.
type Event struct {
	Kind     Kind
	Duration time.Duration // see Kind; 0 where it says nothing of one
	Status   int           // of the response, for Refused, Paused and Resent
	Field    string        // for Paused, one of a few names, such as "Retry-After"
}

// An Observer is told what happens to the requests of a [Transport]. Its method is called on the goroutine that it happens on, by many at
// once: it must be safe for concurrent use and must not block.
type Observer interface {
	// ObserveOutbound takes note of one event.
	ObserveOutbound(ctx context.Context, e Event)
}

// ObserverFunc makes an [Observer] of a function.
type ObserverFunc func(ctx context.Context, e Event)

// ObserveOutbound calls f.
func (f ObserverFunc) ObserveOutbound(ctx context.Context, e Event) { f(ctx, e) }

// Counts is how often each thing has happened. Once nothing is under way, Allowed = Sent + Unsent, but for requests that failed on a
// connection before their header was written, and for those that base itself wrote twice (see [Transport]).
type Counts struct {
	Asked, Allowed, Limited int64
	Sent, Unsent            int64
	Refused, Paused, Resent int64
	Waited                  int64 // requests that have begun to wait
	WaitingNow              int64 // requests that wait now
}

type counters struct {
	byKind     [len(kindNames)]atomic.Int64
	waitingNow atomic.Int64
}

// Counts returns what has happened since the Transport was made.
func (t *Transport) Counts() Counts {
	of := func(k Kind) int64 { return t.counts.byKind[k].Load() }
	return Counts{
		Asked: of(Asked), Allowed: of(Allowed), Limited: of(Limited), Sent: of(Sent), Unsent: of(Unsent),
		Refused: of(Refused), Paused: of(Paused), Resent: of(Resent), Waited: of(Waiting), WaitingNow: t.counts.waitingNow.Load(),
	}
}

func (t *Transport) observe(ctx context.Context, e Event) {
	t.counts.byKind[e.Kind].Add(1)
	if t.cfg.Observer != nil {
		t.cfg.Observer.ObserveOutbound(ctx, e)
	}
}
