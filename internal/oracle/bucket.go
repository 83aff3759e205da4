package oracle

import (
	"math/big"

	"github.com/headgate/headgate"
)

// A bucket holds what is in use of its tokens, in parts of which there are period to a token, at the instant at.
type bucket struct {
	at, life int64
	period   int64
	inUse    *big.Int
}

func micros(l headgate.Limit) int64 { return l.Period.Microseconds() }

func product(a, b int64) *big.Int { return new(big.Int).Mul(big.NewInt(a), big.NewInt(b)) }

// timeToFill returns the microseconds in which Count tokens a Period make up the capacity, rounded up.
func timeToFill(l headgate.Limit) int64 {
	if l.Count == 0 {
		return micros(l)
	}
	q, r := new(big.Int).QuoRem(product(l.Capacity(), micros(l)), big.NewInt(l.Count), new(big.Int))
	return q.Int64() + int64(r.Sign())
}

func (b bucket) moved(now int64) counter {
	b.at = min(b.at, now)
	return b
}

func (b bucket) written() int64                        { return b.at }
func (b bucket) over(now int64) bool                   { return now-b.at >= b.life }
func (b bucket) settled(headgate.Limit, int64) counter { return b }
func (b bucket) edges(headgate.Limit, int64) []int64   { return nil }

// level returns what is in use at now, in parts of which there are l.Period to a token.
func (b bucket) level(l headgate.Limit, now int64) *big.Int {
	if b.over(now) {
		return new(big.Int)
	}
	level := new(big.Int).Set(b.inUse)
	if b.period != micros(l) { // whole tokens stay; of the parts there are as many as before, but less than a token
		whole, part := new(big.Int).QuoRem(level, big.NewInt(b.period), new(big.Int))
		level.Mul(whole, big.NewInt(micros(l)))
		level.Add(level, big.NewInt(min(part.Int64(), micros(l)-1)))
	}
	if most := product(l.Capacity(), micros(l)); level.Cmp(most) > 0 {
		level = most
	}
	level.Sub(level, product(now-b.at, l.Count))
	if level.Sign() < 0 {
		return new(big.Int)
	}
	return level
}

func (b bucket) used(l headgate.Limit, now int64) int64 {
	whole, part := new(big.Int).QuoRem(b.level(l, now), big.NewInt(micros(l)), new(big.Int))
	return whole.Int64() + int64(part.Sign())
}

func (b bucket) granted(l headgate.Limit, now, n int64) counter {
	return bucket{now, timeToFill(l), micros(l), new(big.Int).Add(b.level(l, now), product(n, micros(l)))}
}

func (b bucket) refunded(l headgate.Limit, now, n, _ int64) counter {
	if b.over(now) || now-b.at >= timeToFill(l) {
		return b
	}
	b.inUse = new(big.Int).Sub(b.inUse, product(n, b.period)) // as if they had never been taken
	if b.inUse.Sign() < 0 {
		b.inUse.SetInt64(0)
	}
	return b
}
