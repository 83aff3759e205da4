// Package algorithm holds the five ways of counting as pure functions of state, parameters, instant and cost.
//
// There is no clock, no I/O and no goroutine here. Instants and durations are whole microseconds of the store's clock, since that is
// the grain of Redis TIME. All arithmetic is on integers; products are taken in 128 bits. The script of package redisstore computes
// the same, line by line.
package algorithm

import "math"

// Kind names an algorithm; the values are those of headgate.Algorithm.
type Kind uint8

// The five algorithms.
const (
	TokenBucket Kind = iota
	FixedWindow
	AlignedWindow
	SlidingWindow
	SlidingLog
)

// Never is the Retry of what cannot succeed.
const Never int64 = math.MaxInt64

// Params are the numbers of one valid limit.
type Params struct {
	Kind     Kind
	Count    int64 // tokens per Period, 0 or more
	Period   int64 // microseconds, above 0
	Capacity int64 // most tokens that one request can get
	Life     int64 // microseconds after which a state written now is as if never used, whatever it holds
}

// NewParams works out the parameters of a limit. burst is looked at for TokenBucket alone; 0 = count. For a bucket whose time to
// fill is not below 2^63 microseconds, Life is the largest int64.
func NewParams(kind Kind, count, period, burst int64) Params {
	p := Params{Kind: kind, Count: count, Period: period, Capacity: count, Life: period}
	switch kind {
	case TokenBucket:
		if burst != 0 && count != 0 {
			p.Capacity = burst
		}
		if p.Capacity != count { // otherwise a full Period fills it
			p.Life = MulDivUp(p.Capacity, period, count)
		}
	case SlidingWindow:
		p.Life = 2 * period
	}
	return p
}

// State is what one key has used under one limit. The zero State is that of a key never seen.
type State struct {
	At   int64 // instant of the last write
	Life int64 // after At+Life the state no longer matters; 0 in the zero State
	A    int64 // TokenBucket: whole tokens in use. Windows: tokens granted in the window
	B    int64 // TokenBucket: a further part of a token in use, in 1/Period. SlidingWindow: tokens granted in the window before
}

// Verdict is the answer about one charge, in tokens and microseconds.
type Verdict struct {
	Allowed   bool
	Remaining int64 // whole tokens left: after the charge if it was allowed
	Retry     int64 // 0 when allowed; Never; else when the same charge would be allowed
	Reset     int64 // until the state is as if never used
}

// Take charges cost tokens, if there is room for them, at the instant now. It returns the state to keep and the answer. A denial
// leaves the state as it was, but for one thing: where time has stepped back since the state was written, the state is moved to now,
// so that it ages from there. Cost 0 tells Remaining and Reset; the caller then drops the returned state.
//
// Take decides every Kind but SlidingLog, whose state is a [Log].
func Take(p Params, s State, now, cost int64) (State, Verdict) {
	v := s.Take(&p, now, cost)
	return s, v
}

// Take is the function Take in place, for those who decide millions a second: to pass states about by value takes longer than to decide.
// With cost 0 what becomes of s means nothing.
func (s *State) Take(p *Params, now, cost int64) Verdict {
	dead := s.resume(p, now)
	var v Verdict
	switch p.Kind {
	case TokenBucket:
		v = takeBucket(p, s, dead, now, cost)
	case FixedWindow:
		v = takeFixed(p, s, dead, now, cost)
	case AlignedWindow:
		v = takeAligned(p, s, dead, now, cost)
	default:
		v = takeSliding(p, s, dead, now, cost)
	}
	if !dead && (cost == 0 || !v.Allowed) { // the state stays: it may end before its numbers say, under limits that changed
		left := s.At + min(s.Life, p.Life) - now
		v.Reset = min(v.Reset, left)
		if v.Retry != Never {
			v.Retry = min(v.Retry, left)
		}
	}
	return v
}

// grant replaces s by what it is after cost tokens were granted at now. A look changes nothing.
func (s *State) grant(now, life, a, b, cost int64) {
	if cost > 0 {
		s.At, s.Life, s.A, s.B = now, life, a, b
	}
}

// Refund gives back n tokens, never more than are in use. takenAt is the instant at which they were taken, 0 = not known: then the
// window under way is taken to be theirs. Like Take it serves every Kind but SlidingLog.
func Refund(p Params, s State, now, n, takenAt int64) State {
	if s.resume(&p, now) {
		return s
	}
	switch p.Kind {
	case TokenBucket:
		return refundBucket(s, n)
	case FixedWindow:
		return refundFixed(&p, s, now, n, takenAt)
	case AlignedWindow:
		return refundAligned(&p, s, now, n, takenAt)
	default:
		return refundSliding(&p, s, now, n, takenAt)
	}
}

// resume brings a state to now and says whether it no longer matters. A state from the future is one that was written before time
// stepped back: no time has passed for it since, and it ages on from now. Its life is never longer than the limit now gives.
func (s *State) resume(p *Params, now int64) (dead bool) {
	if now < s.At {
		s.At = now
	}
	return now-s.At >= min(s.Life, p.Life)
}
