// Package meter counts what the program does, for Prometheus. No series is named by anything that a caller can choose: labels are limits,
// routes and a few words. Who is allowed and denied most is kept beside them, in a sketch of bounded size. docs/operations.md lists all
// series, and a test compares.
package meter

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/contrib/promlimit"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// namespace begins the names of all series but those of the Go runtime and the process.
const namespace = promlimit.DefaultNamespace

// maxValues bounds the values of labels that come from the configuration.
const maxValues = 1000

// FromAPI is the value of the label limit for the limits that callers of the decision API bring along.
const FromAPI = "api"

// Options are what a Meter needs.
type Options struct {
	// Visit says from the context of a decision on which route it was made and for which tenant; false = for no route.
	Visit func(context.Context) (route, tenant string, ok bool)
	// Build names the program that runs. Zero = unknown.
	Build Build
}

// Build names a program.
type Build struct{ Version, Revision, Go string }

// A Meter holds all series of one program. It is safe for concurrent use.
type Meter struct {
	visit     func(context.Context) (route, tenant string, ok bool)
	registry  *prometheus.Registry
	decisions *promlimit.Observer
	top       *TopKeys
	refused   [refusals]prometheus.Counter
	upstream  upstreamVecs
	reload    *reloads
	store     *storeTimes

	limits atomic.Pointer[map[string]bool]

	mu     sync.Mutex
	routes map[string]*Route
}

var (
	_ headgate.Observer        = (*Meter)(nil)
	_ headgate.BreakerObserver = (*Meter)(nil)
)

// New returns a Meter with every series that has a fixed name at zero.
func New(o Options) (*Meter, error) {
	m := &Meter{visit: o.Visit, registry: prometheus.NewRegistry(), top: NewTopKeys(), routes: make(map[string]*Route)}
	if m.visit == nil {
		m.visit = func(context.Context) (string, string, bool) { return "", "", false }
	}
	m.Limits(nil)
	var err error
	if m.decisions, err = promlimit.New(promlimit.Config{MaxValues: maxValues, Label: "route", LabelOf: m.routeOf}); err != nil {
		return nil, err
	}
	refused := counters("refused_total", "Requests that the gateway turned away before any decision, by why.", "reason")
	for i := range m.refused {
		m.refused[i] = refused.WithLabelValues(Refusal(i).String())
	}
	m.upstream, m.reload, m.store = newUpstreamVecs(), newReloads(), newStoreTimes()
	list := []prometheus.Collector{
		m.decisions, refused, m.reload, m.store.seconds, buildInfo(o.Build),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	}
	for _, c := range append(list, m.upstream.collectors()...) {
		if err := m.registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Handler serves the series.
func (m *Meter) Handler() http.Handler {
	return promhttp.InstrumentMetricHandler(m.registry, promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
}

// Top returns the sketch of who is allowed and denied most.
func (m *Meter) Top() *TopKeys { return m.top }

func (m *Meter) routeOf(ctx context.Context) string {
	route, _, _ := m.visit(ctx)
	return route
}

// Limits says which limits the configuration has. A decision for no route, which is one of the decision API, is counted under its limit only
// if that is one of them, and otherwise under [FromAPI]: whoever calls the API cannot use up the values of the label.
func (m *Meter) Limits(names map[string]bool) { m.limits.Store(&names) }

// Observe implements [headgate.Observer].
func (m *Meter) Observe(ctx context.Context, o headgate.Observation) {
	_, tenant, onRoute := m.visit(ctx)
	if !onRoute && !(*m.limits.Load())[o.Decision.Limit.Name] {
		o.Decision.Limit = headgate.Limit{Name: FromAPI}
	}
	m.decisions.Observe(ctx, o)
	if o.Err != nil && o.Decision.Source != headgate.FromLocal { // nobody found out whether there was room
		return
	}
	if onRoute {
		m.top.Add(time.Now(), tenant, o.Decision.Allowed)
	}
}

// ObserveBreaker implements [headgate.BreakerObserver].
func (m *Meter) ObserveBreaker(from, to headgate.BreakerState) { m.decisions.ObserveBreaker(from, to) }

// A Refusal says why a request was turned away before any decision.
type Refusal uint8

// The reasons.
const (
	NoRoute       Refusal = iota // no route covers the path
	AmbiguousPath                // the path can be read as that of another route
	Unidentified                 // no API key or token where one is required, or one that is not good
	Forbidden                    // the route is not for that tenant
	PreflightOff                 // a preflight where they are denied
	BodyTooLarge                 // by its own account
	refusals      = int(BodyTooLarge) + 1
)

// String returns the value of the label.
func (r Refusal) String() string {
	names := [refusals]string{"no_route", "ambiguous_path", "unidentified", "forbidden", "preflight", "body_too_large"}
	if int(r) < len(names) {
		return names[r]
	}
	return "refusal(" + strconv.Itoa(int(r)) + ")"
}

// Refused counts a request that was turned away before any decision.
func (m *Meter) Refused(why Refusal) {
	if int(why) < len(m.refused) {
		m.refused[why].Inc()
	}
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func buildInfo(b Build) prometheus.Collector {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: "build_info", Help: "Always 1: which program this is."},
		[]string{"version", "revision", "go"})
	v.WithLabelValues(b.Version, b.Revision, b.Go).Set(1)
	return v
}
