package algorithm

import (
	"math"
	"math/bits"
)

// Sums, products and quotients of numbers of 0 or more. What does not fit is the largest int64.

// Add returns a+b.
func Add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Mul returns a*b.
func Mul(a, b int64) int64 {
	q, _ := MulDiv(a, b, 1)
	return q
}

// MulDiv returns a*b/c rounded down, and the remainder, which is 0 for a quotient that does not fit. c is above 0.
func MulDiv(a, b, c int64) (quotient, remainder int64) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return math.MaxInt64, 0
	}
	if hi == 0 && lo < uint64(c) { // as often as not, and a division takes longer than the rest
		return 0, int64(lo)
	}
	q, r := bits.Div64(hi, lo, uint64(c))
	if q > math.MaxInt64 {
		return math.MaxInt64, 0
	}
	return int64(q), int64(r)
}

// MulDivUp returns a*b/c rounded up. c is above 0.
func MulDivUp(a, b, c int64) int64 {
	q, r := MulDiv(a, b, c)
	if r > 0 {
		q = Add(q, 1)
	}
	return q
}
