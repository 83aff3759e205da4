package stats_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate/bench/internal/stats"
)

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		figures []float64
		want    float64
	}{
		{nil, 0},
		{[]float64{7}, 7},
		{[]float64{9, 1}, 5},
		{[]float64{9, 1, 2}, 2},
		{[]float64{4, 1, 3, 2}, 2.5},
	} {
		before := slices.Clone(tt.figures)
		if got := stats.Median(tt.figures); got != tt.want {
			t.Errorf("Median(%v) = %v, want %v", before, got, tt.want)
		}
		if !slices.Equal(before, tt.figures) {
			t.Errorf("Median changed %v to %v", before, tt.figures)
		}
	}
}

// A machine that slows down over the rounds changes both figures, and not their ratio.
func TestRatioIsOfTheSameRound(t *testing.T) {
	for _, tt := range []struct {
		a, b []float64
		want float64
	}{
		{nil, nil, 0},
		{[]float64{4}, nil, 0},
		{[]float64{4}, []float64{0}, 0},
		{[]float64{40, 20, 4}, []float64{10, 5, 1}, 4},
		{[]float64{40, 0, 4}, []float64{10, 0, 1}, 4},
		{[]float64{1, 2, 9}, []float64{1, 1, 1}, 2},
	} {
		if got := stats.Ratio(tt.a, tt.b); got != tt.want {
			t.Errorf("Ratio(%v, %v) = %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestHistogram(t *testing.T) {
	var h stats.Histogram
	if h.Count() != 0 || h.Max() != 0 || h.Quantile(0.5) != 0 {
		t.Errorf("empty: %d, %v, %v", h.Count(), h.Max(), h.Quantile(0.5))
	}
	for i := 1; i <= 1000; i++ {
		h.Add(time.Duration(i) * time.Microsecond)
	}
	if h.Count() != 1000 || h.Max() != time.Millisecond {
		t.Errorf("%d durations, the longest %v; want 1000, 1ms", h.Count(), h.Max())
	}
	for q, want := range map[float64]time.Duration{0: time.Microsecond, 0.5: 500 * time.Microsecond, 0.99: 990 * time.Microsecond, 1: time.Millisecond} {
		if got := h.Quantile(q); math.Abs(float64(got-want)) > 0.01*float64(want) {
			t.Errorf("quantile %v = %v, want %v within 1 %%", q, got, want)
		}
	}
}

// Every duration is within 0.8 % of what its bucket stands for, from a nanosecond to minutes.
func TestHistogramIsFine(t *testing.T) {
	for d := time.Duration(1); d < 10*time.Minute; d += d/7 + 1 {
		var h stats.Histogram
		h.Add(d)
		h.Add(20 * time.Minute) // or the quantile would be cut to the longest
		if got := h.Quantile(0); math.Abs(float64(got-d)) > 0.008*float64(d) {
			t.Errorf("%v came back as %v", d, got)
		}
	}
}

func TestHistogramEdges(t *testing.T) {
	var h stats.Histogram
	h.Add(-time.Second)
	h.Add(math.MaxInt64)
	if h.Quantile(0) != 0 || h.Quantile(1) < 18*time.Minute {
		t.Errorf("from %v to %v, want from 0 to 18 minutes", h.Quantile(0), h.Quantile(1))
	}
}

func TestHistogramMerge(t *testing.T) {
	var a, b stats.Histogram
	a.Add(time.Millisecond)
	b.Add(time.Second)
	b.Add(time.Second)
	a.Merge(&b)
	if a.Count() != 3 || a.Max() != time.Second || a.Quantile(0) >= 2*time.Millisecond || a.Quantile(0.5) < 900*time.Millisecond {
		t.Errorf("%d durations, from %v over %v to %v", a.Count(), a.Quantile(0), a.Quantile(0.5), a.Max())
	}
}
