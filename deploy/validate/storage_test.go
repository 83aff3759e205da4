package validate_test

import (
	"slices"
	"testing"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// memory is a Prometheus without disk: series in the notation of promtool's unit tests, one sample a step.
type memory struct{ series []*storage.SeriesEntry }

func load(t *testing.T, lines ...string) *memory {
	t.Helper()
	var m memory
	for _, line := range lines {
		lset, values, err := promQL.ParseSeriesDesc(line)
		if err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		var samples []chunks.Sample
		for i, v := range values {
			if !v.Omitted {
				samples = append(samples, sample{at: int64(i) * step.Milliseconds(), value: v.Value})
			}
		}
		m.series = append(m.series, storage.NewListSeries(lset, samples))
	}
	return &m
}

// Querier implements storage.Queryable.
func (m *memory) Querier(int64, int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		set := &seriesSet{at: -1}
		for _, s := range m.series {
			if !slices.ContainsFunc(matchers, func(l *labels.Matcher) bool { return !l.Matches(s.Lset.Get(l.Name)) }) {
				set.list = append(set.list, s)
			}
		}
		return set
	}}, nil
}

type seriesSet struct {
	list []*storage.SeriesEntry
	at   int
}

func (s *seriesSet) Next() bool                        { s.at++; return s.at < len(s.list) }
func (s *seriesSet) At() storage.Series                { return s.list[s.at] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

// A sample is a number at a time in milliseconds.
type sample struct {
	at    int64
	value float64
}

// T and the others implement chunks.Sample.
func (s sample) T() int64                      { return s.at }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.value }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }
