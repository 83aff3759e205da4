package promlimit

import (
	"context"
	"fmt"

	"github.com/headgate/headgate"
	"github.com/prometheus/client_golang/prometheus"
)

// An Observer counts decisions. Make one with [New]; it serves any number of limiters. Safe for concurrent use.
type Observer struct {
	cfg        Config
	collectors []prometheus.Collector

	decisions decisions
	seconds   [headgate.Sources]prometheus.Observer
	errors    [headgate.Causes]prometheus.Counter // by those that are the store's
	abandoned prometheus.Counter
	invalid   prometheus.Counter
	state     prometheus.Gauge
	changes   [headgate.BreakerHalfOpen + 1]prometheus.Counter
}

var (
	_ headgate.Observer        = (*Observer)(nil)
	_ headgate.BreakerObserver = (*Observer)(nil)
	_ prometheus.Collector     = (*Observer)(nil)
)

// New returns an Observer, registered with [Config.Registerer] if there is one. Errors match [headgate.ErrInvalidConfig], or are those
// of the Registerer, such as [prometheus.AlreadyRegisteredError].
func New(cfg Config) (*Observer, error) {
	cfg, err := cfg.check()
	if err != nil {
		return nil, err
	}
	o := &Observer{cfg: cfg}
	o.decisions = newDecisions(o.counterVec("decisions_total", "Decisions, by binding limit and by who decided.", o.decisionLabels()...), cfg)
	o.newTimes()
	o.newFailures()
	o.newBreaker()
	if cfg.Registerer != nil {
		if err := cfg.Registerer.Register(o); err != nil {
			return nil, fmt.Errorf("promlimit: register: %w", err)
		}
	}
	return o, nil
}

func (o *Observer) decisionLabels() []string {
	labels := []string{"limit", "decision", "source"}
	if o.cfg.Label != "" {
		labels = append(labels, o.cfg.Label)
	}
	return labels
}

func (o *Observer) newTimes() {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: o.cfg.Namespace, Name: "decision_seconds", Help: "How long decisions took, by who decided.", Buckets: o.cfg.Buckets,
		ConstLabels: o.cfg.ConstLabels,
	}, []string{"source"})
	for i := range o.seconds {
		o.seconds[i] = v.WithLabelValues(headgate.Source(i).String())
	}
	o.collectors = append(o.collectors, v)
}

func (o *Observer) newFailures() {
	v := o.counterVec("store_errors_total", "Decisions that the store did not make, by why.", "reason")
	for _, c := range []headgate.Cause{headgate.CauseTimeout, headgate.CauseBreaker, headgate.CauseFailed} {
		o.errors[c] = v.WithLabelValues(c.String())
	}
	o.abandoned = o.counterVec("abandoned_total", "Requests whose caller went away before there was a decision.").WithLabelValues()
	o.invalid = o.counterVec("invalid_charges_total", "Requests that no store is asked about, since their charges make no sense.").WithLabelValues()
}

func (o *Observer) newBreaker() {
	o.state = prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: o.cfg.Namespace, Name: "breaker_state", ConstLabels: o.cfg.ConstLabels,
		Help: "0 = the store is asked (closed), 1 = it is not, since it did not answer (open), 2 = a probe is under way (half-open).",
	})
	o.collectors = append(o.collectors, o.state)
	v := o.counterVec("breaker_changes_total", "Changes of the breaker, by the state that it went to.", "to")
	for i := range o.changes {
		o.changes[i] = v.WithLabelValues(headgate.BreakerState(i).String())
	}
}

func (o *Observer) counterVec(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: o.cfg.Namespace, Name: name, Help: help, ConstLabels: o.cfg.ConstLabels}, labels)
	o.collectors = append(o.collectors, v)
	return v
}

// Observe implements [headgate.Observer].
func (o *Observer) Observe(ctx context.Context, seen headgate.Observation) {
	d := &seen.Decision
	switch cause := seen.Cause(ctx); cause {
	case headgate.CauseNone:
	case headgate.CauseInvalid:
		o.invalid.Inc()
		return
	case headgate.CauseAbandoned:
		o.abandoned.Inc()
		return
	case headgate.CauseTimeout, headgate.CauseBreaker:
		o.errors[cause].Inc()
	default:
		o.errors[headgate.CauseFailed].Inc()
	}
	if int(d.Source) >= headgate.Sources {
		return // of a later version of the core
	}
	label := ""
	if o.cfg.LabelOf != nil {
		label = o.cfg.LabelOf(ctx)
	}
	o.decisions.count(label, &d.Limit, d.Allowed, d.Source)
	o.seconds[d.Source].Observe(seen.Elapsed.Seconds())
}

// ObserveBreaker implements [headgate.BreakerObserver]. Limiters that share an Observer should share a [headgate.Guard] as well: the
// state is that of the breaker which changed last. The OnChange of a Guard may be this method.
func (o *Observer) ObserveBreaker(_, to headgate.BreakerState) {
	if int(to) >= len(o.changes) {
		return
	}
	o.state.Set(float64(to))
	o.changes[to].Inc()
}

// Describe implements [prometheus.Collector].
func (o *Observer) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range o.collectors {
		c.Describe(ch)
	}
}

// Collect implements [prometheus.Collector].
func (o *Observer) Collect(ch chan<- prometheus.Metric) {
	for _, c := range o.collectors {
		c.Collect(ch)
	}
}
