package algorithm

// The sliding window keeps two aligned windows: A, granted in the one under way, and B, granted in the one before. It takes the one
// before as spread evenly and counts the share of it that a window of Period ending now still covers, rounded up:
//
//	in use = A + B * (Period - elapsed in the window) / Period
//
// The worst case: all of Count in the last instant of a window, then again as the weight falls, so at most 2*Count-1 in any Period.

// slide returns what was granted in the window under way and in the one before.
func slide(p *Params, s *State, dead bool, now int64) (current, previous int64) {
	if dead {
		return 0, 0
	}
	switch now/p.Period - s.At/p.Period {
	case 0:
		return s.A, before(p, s.B)
	case 1:
		return 0, before(p, s.A)
	}
	return 0, 0
}

// before returns what a window that was granted so much counts for in the next one: all of it, or, where the limit was cut below that,
// one less than the new count, so that a cut makes nobody wait for more than the rest of a window.
func before(p *Params, granted int64) int64 {
	if granted > p.Count {
		return max(0, p.Count-1)
	}
	return granted
}

func takeSliding(p *Params, s *State, dead bool, now, cost int64) Verdict {
	current, previous := slide(p, s, dead, now)
	elapsed := now % p.Period
	left := max(0, p.Count-current-MulDivUp(previous, p.Period-elapsed, p.Period))
	if cost > left {
		v := Verdict{Remaining: left, Retry: Never, Reset: slidingReset(p, current, previous, elapsed)}
		if cost <= p.Count {
			v.Retry = slidingRetry(p, current, previous, elapsed, cost)
		}
		return v
	}
	current += cost
	s.grant(now, p.Life-elapsed, current, previous, cost)
	return Verdict{Allowed: true, Remaining: left - cost, Reset: slidingReset(p, current, previous, elapsed)}
}

// slidingReset returns the time until nothing is left of either counter.
func slidingReset(p *Params, current, previous, elapsed int64) int64 {
	switch {
	case before(p, current) > 0:
		return 2*p.Period - elapsed
	case current > 0 || previous > 0:
		return p.Period - elapsed
	}
	return 0
}

// slidingRetry returns the time until cost tokens, at most Count, fit: the first instant at which the weighted window before leaves
// room for them, in this window or in the next.
func slidingRetry(p *Params, current, previous, elapsed, cost int64) int64 {
	if room := p.Count - current - cost; room >= 0 {
		if at := fits(p, previous, room); at < p.Period {
			return at - elapsed
		}
	}
	return p.Period - elapsed + fits(p, before(p, current), p.Count-cost)
}

// fits returns how far into a window the weight of the one before, ceil(granted*(Period-at)/Period), comes down to room.
func fits(p *Params, granted, room int64) int64 {
	if granted <= room {
		return 0
	}
	q, _ := MulDiv(room, p.Period, granted)
	return p.Period - q
}

func refundSliding(p *Params, s State, now, n, takenAt int64) State {
	current, previous := slide(p, &s, false, now)
	index := now / p.Period
	switch {
	case takenAt == 0 || takenAt/p.Period == index:
		current = max(0, current-n)
	case takenAt/p.Period == index-1:
		previous = max(0, previous-n)
	}
	return State{At: now, Life: p.Life - now%p.Period, A: current, B: previous}
}
