package stats

import (
	"math/bits"
	"time"
)

// A Histogram counts durations in buckets that are at most 1/64 wide of what they hold: a quantile is within 0.8 % of the exact one. The
// zero value is empty. It is not safe for concurrent use.
type Histogram struct {
	buckets [buckets]uint32
	count   int64
	most    time.Duration
}

const (
	fineBits = 6
	fine     = 1 << fineBits
	largest  = 1 << 40 // nanoseconds, 18 minutes; what is longer is counted as that
	buckets  = (40 - fineBits + 1) * fine
)

// Add counts a duration; a negative one is 0.
func (h *Histogram) Add(d time.Duration) {
	h.buckets[bucketOf(d)]++
	h.count++
	h.most = max(h.most, d)
}

// Merge adds what other has counted.
func (h *Histogram) Merge(other *Histogram) {
	for i, n := range other.buckets {
		h.buckets[i] += n
	}
	h.count += other.count
	h.most = max(h.most, other.most)
}

// Count returns how many durations were added.
func (h *Histogram) Count() int64 { return h.count }

// Max returns the longest duration, exactly.
func (h *Histogram) Max() time.Duration { return h.most }

// Quantile returns the duration that a share q, 0 to 1, of all do not exceed; 0 of none.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h.count == 0 {
		return 0
	}
	rank := int64(q*float64(h.count-1)) + 1
	for i, n := range h.buckets {
		if rank -= int64(n); rank <= 0 {
			return min(middleOf(i), h.most)
		}
	}
	return h.most
}

// bucketOf returns the bucket of d. Below 64 ns each nanosecond has its own; then each power of two has 64.
func bucketOf(d time.Duration) int {
	v := uint64(min(max(d, 0), largest-1))
	shift := max(0, bits.Len64(v)-fineBits-1)
	return shift*fine + int(v>>shift)
}

// middleOf returns the middle of a bucket.
func middleOf(i int) time.Duration {
	shift := max(0, i/fine-1)
	low := uint64(i-shift*fine) << shift
	return time.Duration(low + (uint64(1)<<shift)/2)
}
