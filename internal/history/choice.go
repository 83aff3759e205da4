package history

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/headgate/headgate"
)

const day = 24 * time.Hour

// rates are the shapes of limits: slow and fast, those that divide evenly into nothing, nothing at all, and the largest.
var rates = []headgate.Limit{
	{Count: 7, Period: time.Minute},
	{Count: 999_983, Period: time.Second},
	{Count: 3, Period: time.Second},
	{Count: 1, Period: day},
	{Count: 1, Period: time.Second},
	{Count: 5, Period: time.Second},
	{Count: 10, Period: 3 * time.Second},
	{Count: 1_000_000, Period: day},
	{Count: 0, Period: time.Second},
	{Count: 13, Period: 7_777_777 * time.Microsecond},
	{Count: 5, Period: time.Millisecond},
	{Count: 40, Period: headgate.MaxPeriod},
	{Count: headgate.MaxCount, Period: time.Second},
	{Count: headgate.MaxCount - 1, Period: headgate.MaxPeriod},
}

// keyParts hold bytes that some encoding might stumble over, and pairs that look alike once joined to a limit's name.
var keyParts = []string{
	"a", "ab", "abc", "user:1", "\x00", "\xff\xfe\x00\n", "h\u00e9\u4e16\u754c", "a\x1f=5/s", "{a}b", "a b", strings.Repeat("long", 240),
}

var names = []string{"bc", "c", "", "", "n", "api"}

func pick[T any](p *player, list []T) T { return list[p.random.IntN(len(list))] }

// choose picks the few keys and limits of the history.
func (p *player) choose() {
	for range 1 + p.random.IntN(3) {
		p.keys = append(p.keys, fmt.Sprintf("%x.%s", p.seed, pick(p, keyParts)))
	}
	used := map[string]bool{}
	for range 1 + p.random.IntN(3) {
		limit := p.numbers(headgate.Algorithm(p.random.IntN(5)))
		limit.Name = pick(p, names)
		if !used[limit.ID()] {
			used[limit.ID()] = true
			p.limits = append(p.limits, limit)
		}
	}
}

// numbers returns a valid limit without a name.
func (p *player) numbers(a headgate.Algorithm) headgate.Limit {
	for {
		l := pick(p, rates)
		l.Algorithm = a
		switch {
		case a == headgate.TokenBucket:
			l.Burst = pick(p, []int64{0, 0, 1, 2, l.Count/2 + 1, 2*l.Count + 3, headgate.MaxCount})
		case a == headgate.SlidingLog:
			l.Count = min(l.Count, headgate.MaxLogCount)
		}
		if l.Validate() == nil {
			return l
		}
	}
}

// charges returns what the next request asks for: most often one charge.
func (p *player) charges() []headgate.Charge {
	n := 1
	if p.random.IntN(4) == 0 {
		n = 2 + p.random.IntN(3)
	}
	charges := make([]headgate.Charge, n)
	for i := range charges {
		limit := pick(p, p.limits)
		charges[i] = headgate.Charge{Key: pick(p, p.keys), Cost: p.cost(limit), Limit: limit}
	}
	return charges
}

func (p *player) cost(l headgate.Limit) int64 {
	capacity := l.Capacity()
	switch p.random.IntN(12) {
	case 0:
		return 0
	case 1:
		return capacity
	case 2:
		return capacity/2 + 1
	case 3:
		return 1 + p.random.Int64N(capacity+1)
	case 4:
		return capacity + 1
	case 5:
		return pick(p, []int64{math.MaxInt64, math.MaxInt64 - 1, headgate.MaxCount + 1})
	case 6, 7:
		return capacity/3 + 1
	default:
		return 1
	}
}

// leap returns how far the clock runs next.
func (p *player) leap() time.Duration {
	limit := pick(p, p.limits)
	period := limit.Period
	edge := period - time.Duration(p.now.UnixMicro()%period.Microseconds())*time.Microsecond
	token := period / time.Duration(max(1, limit.Count))
	leaps := []time.Duration{
		time.Microsecond, edge, edge - time.Microsecond, edge + time.Microsecond, token, period / 2, period, 2 * period,
		time.Duration(p.random.Int64N(int64(period))), time.Duration(p.random.Int64N(int64(period / 10))),
		p.last.ResetAfter, p.last.ResetAfter - time.Microsecond, time.Duration(p.random.Int64N(int64(3 * day))),
	}
	leap := pick(p, leaps).Truncate(time.Microsecond)
	if leap > 400*day || leap < 0 {
		return time.Microsecond
	}
	return leap
}
