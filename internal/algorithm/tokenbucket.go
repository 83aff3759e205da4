package algorithm

import "math/bits"

// The token bucket is kept as what is in use: A + B/Period tokens at the instant At. It drains by Count tokens a Period, which is
// Count units of 1/Period a microsecond: every quantity is a whole number, for any rate. It is the bucket of tokens seen from its
// other side (tokens left = Capacity - in use), and the GCRA (arrival time = At + the time that what is in use takes to drain).

// drain returns what is in use at now, less than Life after s.At. Where the limit was cut below what was in use at s.At, the new
// capacity was in use then, so that the answer depends on nothing but s and now: a look or a denial need not write it down.
func drain(p *Params, s *State, now int64) (whole, part int64) {
	whole, part = s.A, min(s.B, p.Period-1)
	if whole >= p.Capacity {
		whole, part = p.Capacity, 0
	}
	if now == s.At { // as often as not, where a key is busy: spares a division
		return whole, part
	}
	q, r := MulDiv(now-s.At, p.Count, p.Period)
	whole, part = whole-q, part-r
	if part < 0 {
		whole, part = whole-1, part+p.Period
	}
	if whole < 0 {
		return 0, 0
	}
	return whole, part
}

// drainTime returns the microseconds that whole + part/Period tokens take to drain, rounded up: (whole*Period + part) / Count.
func drainTime(p *Params, whole, part int64) int64 {
	if whole == 0 && part == 0 || p.Count == 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(whole), uint64(p.Period))
	lo, carry := bits.Add64(lo, uint64(part), 0)
	q, r := bits.Div64(hi+carry, lo, uint64(p.Count)) // fits: it is at most Life and a part of a token
	if r > 0 {
		q++
	}
	return int64(q)
}

func takeBucket(p *Params, s *State, dead bool, now, cost int64) Verdict {
	var whole, part int64
	if !dead {
		whole, part = drain(p, s, now)
	}
	left := p.Capacity - whole
	if part > 0 {
		left--
	}
	if cost > left {
		v := Verdict{Remaining: left, Retry: Never, Reset: drainTime(p, whole, part)}
		if cost <= p.Capacity {
			v.Retry = drainTime(p, whole+cost-p.Capacity, part)
		}
		return v
	}
	whole += cost
	s.grant(now, p.Life, whole, part, cost)
	return Verdict{Allowed: true, Remaining: left - cost, Reset: drainTime(p, whole, part)}
}

// refundBucket makes s what it would be had n tokens less been in use at its instant; then it ages on as before. So it does not matter under
// which numbers they are given back, and a bucket whose limit was cut stays as full as it was.
func refundBucket(s State, n int64) State {
	if s.A -= n; s.A < 0 {
		s.A, s.B = 0, 0
	}
	return s
}
