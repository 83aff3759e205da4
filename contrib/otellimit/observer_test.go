package otellimit_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/contrib/otellimit"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace/noop"
)

// A bench is an Observer and what it says.
type bench struct {
	*otellimit.Observer
	reader *metric.ManualReader
	spans  *tracetest.InMemoryExporter
	traces *sdktrace.TracerProvider
}

func newBench(t testing.TB, cfg otellimit.Config) bench {
	t.Helper()
	b := bench{reader: metric.NewManualReader(), spans: tracetest.NewInMemoryExporter()}
	b.traces = sdktrace.NewTracerProvider(sdktrace.WithSyncer(b.spans))
	cfg.MeterProvider, cfg.TracerProvider = metric.NewMeterProvider(metric.WithReader(b.reader)), b.traces
	var err error
	if b.Observer, err = otellimit.New(cfg); err != nil {
		t.Fatal(err)
	}
	return b
}

// collect returns every series of counters and gauges as "name{attribute values}", with histograms by their count.
func (b bench) collect(t *testing.T) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := b.reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	out := make(map[string]int64)
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					out[m.Name+values(p.Attributes)] = p.Value
				}
			case metricdata.Gauge[int64]:
				for _, p := range data.DataPoints {
					out[m.Name+values(p.Attributes)] = p.Value
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					out[m.Name+values(p.Attributes)] = int64(p.Count)
				}
			}
		}
	}
	return out
}

// values are the values of a set, in the order of its keys.
func values(set attribute.Set) string {
	s := ""
	for _, kv := range set.ToSlice() {
		s += " " + kv.Value.String()
	}
	return s
}

func want(t *testing.T, got, want map[string]int64) {
	t.Helper()
	for name, n := range want {
		if got[name] != n {
			t.Errorf("%s = %d, want %d (all: %v)", name, got[name], n, got)
		}
	}
}

func TestDecisionsOfALimiter(t *testing.T) {
	b := newBench(t, otellimit.Config{})
	store, err := headgate.NewMemory(headgate.MemoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	limiter, err := headgate.New(store, []headgate.Limit{headgate.PerHour(2)}, headgate.Config{Observer: b})
	if err != nil {
		t.Fatal(err)
	}
	ctx, span := b.traces.Tracer("test").Start(t.Context(), "request")
	for range 3 {
		if _, err := limiter.Allow(ctx, "secret-key"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := limiter.Allow(ctx, ""); err == nil {
		t.Error("an empty key was decided")
	}
	span.End()
	want(t, b.collect(t), map[string]int64{
		"headgate.decisions allowed 2/hour store": 2, "headgate.decisions denied 2/hour store": 1,
		"headgate.decision.duration store": 3, "headgate.invalid_charges": 1, "headgate.breaker.state": 0,
	})
	spans := b.spans.GetSpans()
	if len(spans) != 1 || len(spans[0].Events) != 3 {
		t.Fatalf("spans %+v, want one with three events", spans)
	}
	denied := spans[0].Events[2]
	found := attribute.NewSet(denied.Attributes...)
	retry, ok := found.Value("headgate.retry_after")
	if denied.Name != "headgate.decision" || !ok || retry.AsFloat64() <= 0 {
		t.Errorf("event %+v, want headgate.decision with a retry_after", denied)
	}
	if s := fmt.Sprint(spans, b.collect(t)); strings.Contains(s, "secret-key") {
		t.Error("a key is told to OpenTelemetry")
	}
}

// broken is a store that cannot answer.
type broken struct{ err error }

func (b broken) Take(context.Context, headgate.Charge, ...headgate.Charge) (headgate.Decision, error) {
	return headgate.Decision{}, b.err
}
func (b broken) Refund(context.Context, headgate.Charge, ...headgate.Charge) error { return b.err }
func (b broken) Reset(context.Context, headgate.Charge, ...headgate.Charge) error  { return b.err }

func TestOutageInSpans(t *testing.T) {
	b := newBench(t, otellimit.Config{Trace: otellimit.TraceSpans})
	limiter, err := headgate.New(broken{context.DeadlineExceeded}, []headgate.Limit{headgate.PerHour(10)}, headgate.Config{
		OnStoreError: headgate.FailOpen, Observer: b, Logger: slog.New(slog.DiscardHandler),
		Breaker: headgate.BreakerConfig{Failures: 2, Cooldown: time.Hour},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, parent := b.traces.Tracer("test").Start(t.Context(), "request")
	for range 5 {
		if _, err := limiter.Allow(ctx, "k"); err != nil {
			t.Fatal(err)
		}
	}
	want(t, b.collect(t), map[string]int64{
		"headgate.decisions allowed 10/hour open": 5, "headgate.store.errors timeout": 2, "headgate.store.errors breaker": 3,
		"headgate.breaker.state": 1, "headgate.breaker.changes open": 1,
	})
	spans := b.spans.GetSpans()
	if len(spans) != 5 {
		t.Fatalf("%d spans, want 5", len(spans))
	}
	for _, s := range spans {
		if s.Name != "headgate.decision" || s.Parent.SpanID() != parent.SpanContext().SpanID() || s.EndTime.Before(s.StartTime) || s.Status.Description == "" {
			t.Errorf("span %+v, want a failed headgate.decision below the request", s)
		}
	}
}

func TestTraceNothingAndNoSpan(t *testing.T) {
	for _, trace := range []otellimit.Trace{otellimit.TraceEvents, otellimit.TraceNothing} {
		b := newBench(t, otellimit.Config{Trace: trace})
		b.Observe(t.Context(), headgate.Observation{Decision: headgate.Decision{Limit: headgate.PerSecond(1)}})
		if spans := b.spans.GetSpans(); len(spans) != 0 {
			t.Errorf("trace %d: spans %v, want none", trace, spans)
		}
	}
	b := newBench(t, otellimit.Config{Trace: otellimit.TraceNothing})
	ctx, span := b.traces.Tracer("test").Start(t.Context(), "request")
	b.Observe(ctx, headgate.Observation{Decision: headgate.Decision{Limit: headgate.PerSecond(1)}})
	span.End()
	if events := b.spans.GetSpans()[0].Events; len(events) != 0 {
		t.Errorf("events %v, want none", events)
	}
}

func TestAbandoned(t *testing.T) {
	b := newBench(t, otellimit.Config{})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	b.Observe(gone, headgate.Observation{Err: &headgate.StoreError{Op: "take", Err: context.Canceled}, Decision: headgate.Decision{Source: headgate.FromClosed}})
	got := b.collect(t)
	want(t, got, map[string]int64{"headgate.abandoned": 1})
	if len(got) != 2 { // and the breaker's state
		t.Errorf("series %v, want no other", got)
	}
}

// Whatever limits are asked for, by many at once, there is a bound on the series, and nothing is lost from the sum.
func TestSeriesAreBounded(t *testing.T) {
	const most, workers, each = 10, 8, 300
	b := newBench(t, otellimit.Config{MaxLimits: most})
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				limit := headgate.PerSecond(int64(w*each + i + 1))
				b.Observe(context.Background(), headgate.Observation{Decision: headgate.Decision{Limit: limit, Allowed: i%2 == 0, Source: headgate.Source(i % 6)}})
				b.ObserveBreaker(headgate.BreakerClosed, headgate.BreakerState(i%3))
			}
		})
	}
	wg.Wait()
	series, sum := 0, int64(0)
	for name, n := range b.collect(t) {
		if strings.HasPrefix(name, "headgate.decisions ") {
			series++
			sum += n
		}
	}
	if bound := (most + 1) * 8; series > bound || sum != workers*each {
		t.Errorf("%d series with %d decisions, want at most %d with %d", series, sum, bound, workers*each)
	}
}

func TestConfig(t *testing.T) {
	for name, cfg := range map[string]otellimit.Config{"limits": {MaxLimits: -1}, "trace": {Trace: 9}} {
		if _, err := otellimit.New(cfg); !errors.Is(err, headgate.ErrInvalidConfig) {
			t.Errorf("%s: error %v, want ErrInvalidConfig", name, err)
		}
	}
	o, err := otellimit.New(otellimit.Config{TracerProvider: noop.NewTracerProvider(), Trace: otellimit.TraceSpans})
	if err != nil {
		t.Fatal(err)
	}
	o.Observe(t.Context(), headgate.Observation{}) // the global providers do nothing unless they were set
}

func BenchmarkObserve(b *testing.B) {
	o := newBench(b, otellimit.Config{})
	seen := headgate.Observation{Decision: headgate.Decision{Allowed: true, Limit: headgate.PerSecond(1)}, Elapsed: time.Millisecond}
	b.ReportAllocs()
	for b.Loop() {
		o.Observe(context.Background(), seen)
	}
}
