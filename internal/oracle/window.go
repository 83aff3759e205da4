package oracle

import "github.com/headgate/headgate"

// fixed is a window that began at begin; life after its last write it ends.
type fixed struct {
	at, life int64
	begin    int64
	tokens   int64
}

func (f fixed) moved(now int64) counter {
	if now < f.at {
		f.begin -= f.at - now
		f.at = now
	}
	return f
}

func (f fixed) written() int64                        { return f.at }
func (f fixed) over(now int64) bool                   { return now-f.at >= f.life }
func (f fixed) settled(headgate.Limit, int64) counter { return f }
func (f fixed) edges(headgate.Limit, int64) []int64   { return nil }

// end is where the window ends: as it would have, but no later than the period, should that be another now, after the last write.
func (f fixed) end(l headgate.Limit) int64 { return f.at + min(f.life, micros(l)) }

func (f fixed) used(l headgate.Limit, now int64) int64 {
	if now >= f.end(l) {
		return 0
	}
	return f.tokens
}

func (f fixed) granted(l headgate.Limit, now, n int64) counter {
	if f.used(l, now) == 0 {
		return fixed{now, micros(l), now, n}
	}
	return fixed{now, f.end(l) - now, f.begin, f.tokens + n}
}

func (f fixed) refunded(l headgate.Limit, now, n, taken int64) counter {
	if now >= f.end(l) || taken != 0 && taken < f.begin {
		return f
	}
	return fixed{now, f.end(l) - now, f.begin, max(0, f.tokens-n)}
}

// aligned counts the window of the clock that holds the instant of the last write.
type aligned struct {
	at, life int64
	tokens   int64
}

func (a aligned) moved(now int64) counter {
	a.at = min(a.at, now)
	return a
}

func (a aligned) written() int64                        { return a.at }
func (a aligned) over(now int64) bool                   { return now-a.at >= a.life }
func (a aligned) settled(headgate.Limit, int64) counter { return a }
func (a aligned) edges(headgate.Limit, int64) []int64   { return nil }

// windowStart returns where the window of the clock that holds t begins.
func windowStart(l headgate.Limit, t int64) int64 { return t - t%micros(l) }

func (a aligned) used(l headgate.Limit, now int64) int64 {
	if a.over(now) || windowStart(l, now) != windowStart(l, a.at) {
		return 0
	}
	return a.tokens
}

func (a aligned) granted(l headgate.Limit, now, n int64) counter {
	return aligned{now, windowStart(l, now) + micros(l) - now, a.used(l, now) + n}
}

func (a aligned) refunded(l headgate.Limit, now, n, taken int64) counter {
	start := windowStart(l, now)
	if a.over(now) || start != windowStart(l, a.at) || taken != 0 && start != windowStart(l, taken) {
		return a
	}
	return aligned{now, start + micros(l) - now, max(0, a.tokens-n)}
}
