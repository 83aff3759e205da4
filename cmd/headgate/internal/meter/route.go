package meter

import (
	"context"
	"sync"
	"time"

	"github.com/headgate/headgate/contrib/promlimit"
	"github.com/headgate/headgate/outbound"
	"github.com/prometheus/client_golang/prometheus"
)

// upstreamVecs are the series of what leaves the gateway.
type upstreamVecs struct {
	exempt, sent, unsent, requests, outbound *prometheus.CounterVec
	inFlight                                 *prometheus.GaugeVec
	seconds                                  *prometheus.HistogramVec
}

func newUpstreamVecs() upstreamVecs {
	return upstreamVecs{
		exempt: counters("exempt_total", "Requests that were passed on without a decision: preflights, and those that nothing limits.", "route"),
		sent: counters("upstream_sent_total", "Requests that left for the upstream: counted as their header is written to the connection, each attempt.",
			"route"),
		unsent: counters("upstream_unsent_total", "Requests that were to be passed on and never left: no connection, or the caller went away.", "route"),
		requests: counters("upstream_requests_total", "Requests that left for the upstream and are over, by the class of its response; error = there was none.",
			"route", "code"),
		outbound: counters("outbound_total", "What happened to the requests of routes that are outbound, by event.", "route", "event"),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: namespace, Name: "upstream_in_flight", Help: "Requests that are being passed on, until the last byte of the response.",
		}, []string{"route"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: "upstream_seconds", Help: "From passing a request on until the header of its response.",
			Buckets: []float64{1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3, 1, 2.5, 5, 10, 30, 60},
		}, []string{"route"}),
	}
}

func (v upstreamVecs) collectors() []prometheus.Collector {
	return []prometheus.Collector{v.exempt, v.sent, v.unsent, v.requests, v.outbound, v.inFlight, v.seconds}
}

// classes are the values of the label code: by the first digit of the status, and 0 for no response.
var classes = [...]string{"error", "1xx", "2xx", "3xx", "4xx", "5xx"}

// A Route counts what is passed on along one route. It is safe for concurrent use.
type Route struct {
	exempt, sent, unsent prometheus.Counter
	requests             [len(classes)]prometheus.Counter
	inFlight             prometheus.Gauge
	seconds              prometheus.Observer

	events     sync.Once // makes those of routes that are outbound
	makeEvents func()
	outbound   [outbound.Resent + 1]prometheus.Counter
}

var _ outbound.Observer = (*Route)(nil)

// Route returns the counters of the route with this path: the same ones each time, so that they go on over a reload. Routes come from the
// configuration alone; should there ever be more than a thousand paths, the further ones share the counters of [promlimit.Other].
func (m *Meter) Route(path string) *Route {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.routes[path]; r != nil {
		return r
	}
	if len(m.routes) >= maxValues {
		path = promlimit.Other
		if r := m.routes[path]; r != nil {
			return r
		}
	}
	v := m.upstream
	r := &Route{
		exempt: v.exempt.WithLabelValues(path), sent: v.sent.WithLabelValues(path), unsent: v.unsent.WithLabelValues(path),
		inFlight: v.inFlight.WithLabelValues(path), seconds: v.seconds.WithLabelValues(path),
	}
	for i, class := range classes {
		r.requests[i] = v.requests.WithLabelValues(path, class)
	}
	r.makeEvents = func() {
		for kind := range r.outbound {
			r.outbound[kind] = v.outbound.WithLabelValues(path, outbound.Kind(kind).String())
		}
	}
	m.routes[path] = r
	return r
}

// Exempt counts a request that is passed on without a decision.
func (r *Route) Exempt() { r.exempt.Inc() }

// Begin and End stand around the passing on of a request.
func (r *Route) Begin() { r.inFlight.Inc() }

// End is the end of what Begin began.
func (r *Route) End() { r.inFlight.Dec() }

// Sent counts a request that leaves.
func (r *Route) Sent() { r.sent.Inc() }

// ObserveOutbound implements [outbound.Observer].
func (r *Route) ObserveOutbound(_ context.Context, e outbound.Event) {
	r.events.Do(r.makeEvents)
	if int(e.Kind) < len(r.outbound) {
		r.outbound[e.Kind].Inc()
	}
}

// Over counts a request that is over: it left so many times, and got a response of this status after this time; 0 = it got none.
func (r *Route) Over(sent int, status int, elapsed time.Duration) {
	if sent == 0 {
		r.unsent.Inc()
		return
	}
	class := status / 100
	if class < 0 || class >= len(classes) {
		class = 0
	}
	r.requests[0].Add(float64(sent - 1)) // attempts without a response of their own
	r.requests[class].Inc()
	if status != 0 {
		r.seconds.Observe(elapsed.Seconds())
	}
}
