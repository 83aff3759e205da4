package promlimit_test

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
	"github.com/headgate/headgate/contrib/promlimit"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func newObserver(t testing.TB, cfg promlimit.Config) *promlimit.Observer {
	t.Helper()
	o, err := promlimit.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// want compares the series of the given names, which are those without the namespace.
func want(t *testing.T, o *promlimit.Observer, text string, names ...string) {
	t.Helper()
	for i := range names {
		names[i] = "headgate_" + names[i]
	}
	if err := testutil.CollectAndCompare(o, strings.NewReader(text), names...); err != nil {
		t.Error(err)
	}
}

func TestDecisionsOfALimiter(t *testing.T) {
	store, err := headgate.NewMemory(headgate.MemoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	o := newObserver(t, promlimit.Config{})
	limit := headgate.PerHour(2)
	limit.Name = "hourly"
	limiter, err := headgate.New(store, []headgate.Limit{limit}, headgate.Config{Observer: o})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := limiter.Allow(t.Context(), "secret-key"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := limiter.Allow(t.Context(), ""); err == nil {
		t.Error("an empty key was decided")
	}
	want(t, o, `
# HELP headgate_decisions_total Decisions, by binding limit and by who decided.
# TYPE headgate_decisions_total counter
headgate_decisions_total{decision="allowed",limit="hourly",source="store"} 2
headgate_decisions_total{decision="denied",limit="hourly",source="store"} 1
# HELP headgate_invalid_charges_total Requests that no store is asked about, since their charges make no sense.
# TYPE headgate_invalid_charges_total counter
headgate_invalid_charges_total 1
`, "decisions_total", "invalid_charges_total")
}

// A limit without a name is called by its text form.
func TestUnnamedLimit(t *testing.T) {
	o := newObserver(t, promlimit.Config{})
	o.Observe(t.Context(), headgate.Observation{Decision: headgate.Decision{Allowed: true, Limit: headgate.PerSecond(5)}})
	want(t, o, `
# HELP headgate_decisions_total Decisions, by binding limit and by who decided.
# TYPE headgate_decisions_total counter
headgate_decisions_total{decision="allowed",limit="5/s",source="store"} 1
headgate_decisions_total{decision="denied",limit="5/s",source="store"} 0
`, "decisions_total")
}

// broken is a store that cannot answer.
type broken struct{ err error }

func (b broken) Take(context.Context, headgate.Charge, ...headgate.Charge) (headgate.Decision, error) {
	return headgate.Decision{}, b.err
}
func (b broken) Refund(context.Context, headgate.Charge, ...headgate.Charge) error { return b.err }
func (b broken) Reset(context.Context, headgate.Charge, ...headgate.Charge) error  { return b.err }

func TestOutage(t *testing.T) {
	o := newObserver(t, promlimit.Config{})
	limit := headgate.PerHour(10)
	limit.Name = "l"
	limiter, err := headgate.New(broken{errors.New("away")}, []headgate.Limit{limit}, headgate.Config{
		OnStoreError: headgate.FailOpen, Observer: o, Logger: slog.New(slog.DiscardHandler), Breaker: headgate.BreakerConfig{Failures: 2, Cooldown: time.Hour},
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if d, err := limiter.Allow(t.Context(), "k"); err != nil || d.Source != headgate.FromOpen {
			t.Fatalf("%+v, %v", d, err)
		}
	}
	want(t, o, `
# HELP headgate_breaker_changes_total Changes of the breaker, by the state that it went to.
# TYPE headgate_breaker_changes_total counter
headgate_breaker_changes_total{to="closed"} 0
headgate_breaker_changes_total{to="half-open"} 0
headgate_breaker_changes_total{to="open"} 1
# HELP headgate_breaker_state 0 = the store is asked (closed), 1 = it is not, since it did not answer (open), 2 = a probe is under way (half-open).
# TYPE headgate_breaker_state gauge
headgate_breaker_state 1
# HELP headgate_decisions_total Decisions, by binding limit and by who decided.
# TYPE headgate_decisions_total counter
headgate_decisions_total{decision="allowed",limit="l",source="open"} 5
headgate_decisions_total{decision="allowed",limit="l",source="store"} 0
headgate_decisions_total{decision="denied",limit="l",source="store"} 0
# HELP headgate_store_errors_total Decisions that the store did not make, by why.
# TYPE headgate_store_errors_total counter
headgate_store_errors_total{reason="breaker"} 3
headgate_store_errors_total{reason="failed"} 2
headgate_store_errors_total{reason="timeout"} 0
`, "breaker_changes_total", "breaker_state", "decisions_total", "store_errors_total")
}

func TestReasons(t *testing.T) {
	o := newObserver(t, promlimit.Config{})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	timeout := &headgate.StoreError{Op: "take", Err: context.DeadlineExceeded}
	o.Observe(t.Context(), headgate.Observation{Err: timeout, Decision: headgate.Decision{Source: headgate.FromClosed}})
	o.Observe(gone, headgate.Observation{Err: &headgate.StoreError{Op: "take", Err: context.Canceled}, Decision: headgate.Decision{Source: headgate.FromClosed}})
	want(t, o, `
# HELP headgate_abandoned_total Requests whose caller went away before there was a decision.
# TYPE headgate_abandoned_total counter
headgate_abandoned_total 1
# HELP headgate_store_errors_total Decisions that the store did not make, by why.
# TYPE headgate_store_errors_total counter
headgate_store_errors_total{reason="breaker"} 0
headgate_store_errors_total{reason="failed"} 0
headgate_store_errors_total{reason="timeout"} 1
`, "abandoned_total", "store_errors_total")
}

type routeKey struct{}

func routeOf(ctx context.Context) string { s, _ := ctx.Value(routeKey{}).(string); return s }

func TestFurtherLabel(t *testing.T) {
	o := newObserver(t, promlimit.Config{Label: "route", LabelOf: routeOf, ConstLabels: prometheus.Labels{"app": "x"}})
	ctx := context.WithValue(t.Context(), routeKey{}, "/a")
	o.Observe(ctx, headgate.Observation{Decision: headgate.Decision{Allowed: true, Limit: headgate.PerSecond(5)}})
	want(t, o, `
# HELP headgate_decisions_total Decisions, by binding limit and by who decided.
# TYPE headgate_decisions_total counter
headgate_decisions_total{app="x",decision="allowed",limit="5/s",route="/a",source="store"} 1
headgate_decisions_total{app="x",decision="denied",limit="5/s",route="/a",source="store"} 0
`, "decisions_total")
}

// Whatever limits and labels are asked for, there is a bound on the series, and nothing is lost from the sum.
func TestSeriesAreBounded(t *testing.T) {
	const most, asked = 20, 3000
	o := newObserver(t, promlimit.Config{MaxValues: most, Label: "route", LabelOf: routeOf})
	for i := range asked {
		ctx := context.WithValue(t.Context(), routeKey{}, fmt.Sprintf("/\xff%d", i%97))
		limit := headgate.PerSecond(int64(i + 1))
		if i%2 == 0 {
			limit.Name = fmt.Sprintf("name %d", i)
		}
		o.Observe(ctx, headgate.Observation{Decision: headgate.Decision{Allowed: i%3 == 0, Limit: limit, Source: headgate.Source(i % 6)}})
	}
	if got, bound := testutil.CollectAndCount(o, "headgate_decisions_total"), 10*most*8; got > bound {
		t.Errorf("%d series, want at most %d", got, bound)
	}
	if got := total(t, o); got != asked {
		t.Errorf("%v decisions counted, want %d", got, asked)
	}
}

// total is the sum of all series of decisions_total.
func total(t *testing.T, o *promlimit.Observer) float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	if err := registry.Register(o); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		if f.GetName() == "headgate_decisions_total" {
			for _, m := range f.GetMetric() {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

func TestConcurrentUse(t *testing.T) {
	const workers, each = 8, 500
	o := newObserver(t, promlimit.Config{MaxValues: 10})
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range each {
				o.Observe(context.Background(), headgate.Observation{Decision: headgate.Decision{Limit: headgate.PerSecond(int64(1 + i%30)), Source: headgate.Source(i % 6)}})
				o.ObserveBreaker(headgate.BreakerClosed, headgate.BreakerState(i%3))
				if i%100 == 0 {
					testutil.CollectAndCount(o)
				}
			}
		})
	}
	wg.Wait()
	if got := total(t, o); got != workers*each {
		t.Errorf("%v decisions counted, want %d", got, workers*each)
	}
}

func TestObservingAllocatesNothing(t *testing.T) {
	o := newObserver(t, promlimit.Config{Label: "route", LabelOf: routeOf, MaxValues: 2})
	ctx := context.WithValue(t.Context(), routeKey{}, "/a")
	seen := []headgate.Observation{
		{Decision: headgate.Decision{Allowed: true, Limit: headgate.PerSecond(1)}, Elapsed: time.Millisecond},
		{Decision: headgate.Decision{Limit: headgate.Limit{Name: "n", Count: 1, Period: time.Second}, Source: headgate.FromLocal}},
		{Decision: headgate.Decision{Limit: headgate.PerSecond(2)}}, // one too many
	}
	observe := func() {
		for _, s := range seen {
			o.Observe(ctx, s)
		}
	}
	observe()
	if n := testing.AllocsPerRun(100, observe); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func TestConfig(t *testing.T) {
	bad := map[string]promlimit.Config{
		"values": {MaxValues: -1}, "namespace": {Namespace: "a-b"}, "buckets": {Buckets: []float64{1, 1}}, "label alone": {Label: "x"},
		"function alone": {LabelOf: routeOf}, "label of ours": {Label: "limit", LabelOf: routeOf}, "reserved": {Label: "__x", LabelOf: routeOf},
		"const label of ours": {ConstLabels: prometheus.Labels{"le": "x"}},
	}
	for name, cfg := range bad {
		if _, err := promlimit.New(cfg); !errors.Is(err, headgate.ErrInvalidConfig) {
			t.Errorf("%s: error %v, want ErrInvalidConfig", name, err)
		}
	}
	registry := prometheus.NewPedanticRegistry()
	newObserver(t, promlimit.Config{Registerer: registry})
	var already prometheus.AlreadyRegisteredError
	if _, err := promlimit.New(promlimit.Config{Registerer: registry}); !errors.As(err, &already) {
		t.Errorf("second observer: error %v, want AlreadyRegisteredError", err)
	}
	newObserver(t, promlimit.Config{Registerer: registry, Namespace: "second"})
	problems, err := testutil.GatherAndLint(registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: %v, %v", problems, err)
	}
}

func BenchmarkObserve(b *testing.B) {
	o := newObserver(b, promlimit.Config{})
	seen := headgate.Observation{Decision: headgate.Decision{Allowed: true, Limit: headgate.PerSecond(1)}, Elapsed: time.Millisecond}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			o.Observe(context.Background(), seen)
		}
	})
}
