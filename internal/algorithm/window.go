package algorithm

// A window is kept as the tokens granted in it (A) and its end (At+Life). FixedWindow opens one at a key's first request;
// AlignedWindow has them at multiples of Period.

func takeFixed(p *Params, s *State, dead bool, now, cost int64) Verdict {
	used, end := int64(0), now+p.Period
	if !dead && s.A > 0 { // a window given back whole is as if never opened
		used, end = s.A, s.At+min(s.Life, p.Life)
	}
	return takeWindow(p, s, used, end, now, cost)
}

func takeAligned(p *Params, s *State, dead bool, now, cost int64) Verdict {
	index, used := now/p.Period, int64(0)
	if !dead && s.At/p.Period == index {
		used = s.A
	}
	return takeWindow(p, s, used, (index+1)*p.Period, now, cost)
}

// takeWindow charges a window in which used tokens were granted and that ends at end.
func takeWindow(p *Params, s *State, used, end, now, cost int64) Verdict {
	v := Verdict{Remaining: max(0, p.Count-used)} // used is above Count after a cut
	if used > 0 {
		v.Reset = end - now
	}
	if cost > v.Remaining {
		v.Retry = Never
		if cost <= p.Count {
			v.Retry = end - now
		}
		return v
	}
	if cost > 0 {
		v.Reset = end - now
	}
	v.Allowed = true
	v.Remaining -= cost
	s.grant(now, end-now, used+cost, 0, cost)
	return v
}

func refundFixed(p *Params, s State, now, n, takenAt int64) State {
	end := s.At + min(s.Life, p.Life)
	if takenAt != 0 && takenAt < end-p.Period { // an earlier window's
		return s
	}
	return State{At: now, Life: end - now, A: max(0, s.A-n)}
}

func refundAligned(p *Params, s State, now, n, takenAt int64) State {
	index := now / p.Period
	if s.At/p.Period != index || takenAt != 0 && takenAt/p.Period != index {
		return s
	}
	return State{At: now, Life: (index+1)*p.Period - now, A: max(0, s.A-n)}
}
