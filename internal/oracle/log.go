package oracle

import "github.com/headgate/headgate"

type entry struct{ at, n int64 }

// slidingLog holds every grant, and the period at the last one: so long after it the log no longer matters. A log is brought back by
// moving all of its entries.
type slidingLog struct {
	period  int64
	entries []entry
}

func (s slidingLog) written() int64 {
	if len(s.entries) == 0 {
		return 0
	}
	return s.entries[len(s.entries)-1].at
}

func (s slidingLog) moved(now int64) counter {
	if len(s.entries) == 0 || s.written() <= now {
		return s
	}
	back, entries := s.written()-now, []entry(nil)
	for _, e := range s.entries {
		entries = append(entries, entry{e.at - back, e.n})
	}
	return slidingLog{s.period, entries}
}

func (s slidingLog) over(now int64) bool { return len(s.entries) == 0 || now >= s.written()+s.period }

func (s slidingLog) edges(headgate.Limit, int64) []int64 { return nil }

func (s slidingLog) settled(l headgate.Limit, now int64) counter {
	kept := slidingLog{period: s.period}
	for _, e := range s.entries {
		if !s.over(now) && now < e.at+micros(l) {
			kept.entries = append(kept.entries, e)
		}
	}
	return kept
}

func (s slidingLog) used(l headgate.Limit, now int64) int64 {
	sum := int64(0)
	for _, e := range s.entries {
		if !s.over(now) && now < e.at+micros(l) {
			sum += e.n
		}
	}
	return sum
}

func (s slidingLog) granted(l headgate.Limit, now, n int64) counter {
	kept := s.settled(l, now).(slidingLog)
	return slidingLog{micros(l), append(kept.entries, entry{now, n})}
}

func (s slidingLog) refunded(_ headgate.Limit, _, n, taken int64) counter {
	kept := slidingLog{period: s.period}
	for _, e := range s.entries {
		if taken == 0 || e.at == taken {
			back := min(n, e.n)
			n, e.n = n-back, e.n-back
		}
		if e.n > 0 {
			kept.entries = append(kept.entries, e)
		}
	}
	return kept
}
