package load

import (
	"strconv"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// longest is where latencies end: what took longer is counted as so long.
const longest = 4 * time.Hour

// A histogram counts durations to within a thousandth of each. It must be made by newHistogram.
type histogram struct{ counts *hdrhistogram.Histogram }

func newHistogram() histogram { return histogram{hdrhistogram.New(1, int64(longest), 3)} }

func (h histogram) add(d time.Duration) {
	_ = h.counts.RecordValue(int64(max(0, min(d, longest)))) // only a value out of bounds is an error
}

func (h histogram) reset() { h.counts.Reset() }

// Percentiles are those of a set of durations; all 0 if it is empty.
type Percentiles struct {
	Count int64  `json:"count"`
	P50   Millis `json:"p50_ms"`
	P90   Millis `json:"p90_ms"`
	P99   Millis `json:"p99_ms"`
	P999  Millis `json:"p99_9_ms"`
	Max   Millis `json:"max_ms"`
}

func (h histogram) percentiles() Percentiles {
	v := h.counts.ValueAtPercentilesSlice([]float64{50, 90, 99, 99.9})
	return Percentiles{h.counts.TotalCount(), Millis(v[0]), Millis(v[1]), Millis(v[2]), Millis(v[3]), Millis(h.counts.Max())}
}

// Millis is a duration that JSON shows in milliseconds, with three decimals.
type Millis time.Duration

// MarshalJSON implements json.Marshaler.
func (m Millis) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(m)/1e6, 'f', 3, 64), nil
}

// String shows m in a unit that suits it, with three digits or so.
func (m Millis) String() string {
	d := time.Duration(m)
	switch {
	case d >= 10*time.Second:
		d = d.Round(10 * time.Millisecond)
	case d >= 10*time.Millisecond:
		d = d.Round(100 * time.Microsecond)
	case d >= time.Millisecond:
		d = d.Round(10 * time.Microsecond)
	case d >= 10*time.Microsecond:
		d = d.Round(time.Microsecond)
	}
	return d.String()
}
