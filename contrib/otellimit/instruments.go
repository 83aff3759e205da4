package otellimit

import (
	"errors"

	"github.com/headgate/headgate"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// instruments are what is measured, with the options of each series made beforehand.
type instruments struct {
	decisions metric.Int64Counter
	duration  metric.Float64Histogram
	errors    metric.Int64Counter
	abandoned metric.Int64Counter
	invalid   metric.Int64Counter
	state     metric.Int64Gauge
	changes   metric.Int64Counter

	bySource [headgate.Sources][]metric.RecordOption
	byReason [headgate.Causes][]metric.AddOption // for those that are the store's
	byState  [headgate.BreakerHalfOpen + 1][]metric.AddOption
}

// bounds are those of the histogram, in seconds: they tell a decision in memory from one over a network and from a time-out.
var bounds = []float64{5e-6, 25e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 1}

func newInstruments(m metric.Meter) (instruments, error) {
	var in instruments
	var failed error
	counter := func(name, unit, text string) metric.Int64Counter {
		c, err := m.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(text))
		failed = errors.Join(failed, err)
		return c
	}
	in.decisions = counter("headgate.decisions", "{decision}", "Decisions, by binding limit and by who decided.")
	in.errors = counter("headgate.store.errors", "{error}", "Decisions that the store did not make, by why.")
	in.abandoned = counter("headgate.abandoned", "{request}", "Requests whose caller went away before there was a decision.")
	in.invalid = counter("headgate.invalid_charges", "{request}", "Requests that no store is asked about, since their charges make no sense.")
	in.changes = counter("headgate.breaker.changes", "{change}", "Changes of the breaker, by the state that it went to.")
	var err error
	in.duration, err = m.Float64Histogram("headgate.decision.duration", metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(bounds...),
		metric.WithDescription("How long decisions took, by who decided."))
	failed = errors.Join(failed, err)
	in.state, err = m.Int64Gauge("headgate.breaker.state", metric.WithDescription("0 = the store is asked, 1 = it is not, 2 = a probe is under way."))
	failed = errors.Join(failed, err)
	for i := range in.bySource {
		in.bySource[i] = []metric.RecordOption{set(attribute.String("headgate.source", headgate.Source(i).String()))}
	}
	for _, c := range []headgate.Cause{headgate.CauseTimeout, headgate.CauseBreaker, headgate.CauseFailed} {
		in.byReason[c] = []metric.AddOption{set(attribute.String("headgate.reason", c.String()))}
	}
	for i := range in.byState {
		in.byState[i] = []metric.AddOption{set(attribute.String("headgate.breaker.to", headgate.BreakerState(i).String()))}
	}
	return in, failed
}

func set(attributes ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attributes...))
}
