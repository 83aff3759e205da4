package oracle

import (
	"math/big"

	"github.com/headgate/headgate"
)

// sliding counts the window of the clock that holds the instant of the last write, and the one before it.
type sliding struct {
	at, life          int64
	current, previous int64
}

func (s sliding) moved(now int64) counter {
	s.at = min(s.at, now)
	return s
}

func (s sliding) written() int64                        { return s.at }
func (s sliding) over(now int64) bool                   { return now-s.at >= s.life }
func (s sliding) settled(headgate.Limit, int64) counter { return s }

// edges are where the window under way becomes the one before, and where it ends to count.
func (s sliding) edges(l headgate.Limit, now int64) []int64 {
	next := windowStart(l, now) + micros(l)
	return []int64{next, next + micros(l)}
}

// shares returns the tokens that count as granted in the window that holds now, and in the one before.
func (s sliding) shares(l headgate.Limit, now int64) (current, previous int64) {
	if s.over(now) || now-s.at >= 2*micros(l) {
		return 0, 0
	}
	switch windowStart(l, now) {
	case windowStart(l, s.at):
		return s.current, formerly(l, s.previous)
	case windowStart(l, s.at) + micros(l):
		return 0, formerly(l, s.current)
	}
	return 0, 0
}

// formerly returns what a window counts for in the next one: after a cut one less than the count.
func formerly(l headgate.Limit, granted int64) int64 {
	if granted > l.Count {
		return max(0, l.Count-1)
	}
	return granted
}

func (s sliding) used(l headgate.Limit, now int64) int64 {
	current, previous := s.shares(l, now)
	rest := windowStart(l, now) + micros(l) - now
	weight, part := new(big.Int).QuoRem(product(previous, rest), big.NewInt(micros(l)), new(big.Int))
	return current + weight.Int64() + int64(part.Sign())
}

// write returns the counter with new numbers: it lives to the end of the next window.
func write(l headgate.Limit, now, current, previous int64) counter {
	return sliding{now, windowStart(l, now) + 2*micros(l) - now, current, previous}
}

func (s sliding) granted(l headgate.Limit, now, n int64) counter {
	current, previous := s.shares(l, now)
	return write(l, now, current+n, previous)
}

func (s sliding) refunded(l headgate.Limit, now, n, taken int64) counter {
	if s.over(now) || now-s.at >= 2*micros(l) {
		return s
	}
	current, previous := s.shares(l, now)
	start := windowStart(l, now)
	if taken == 0 || windowStart(l, taken) == start {
		current = max(0, current-n)
	} else if windowStart(l, taken) == start-micros(l) {
		previous = max(0, previous-n)
	}
	return write(l, now, current, previous)
}
