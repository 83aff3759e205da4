package meter

import (
	"github.com/headgate/headgate/lease"
	"github.com/prometheus/client_golang/prometheus"
)

// leases collects what a lease.Store says of itself.
type leases struct {
	stats                          func() lease.Stats
	decisions, calls, tokens, held *prometheus.Desc
	keys                           *prometheus.Desc
}

// Leases serves what leases have done. It is called once, with what is safe for concurrent use.
func (m *Meter) Leases(stats func() lease.Stats) error {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, "lease", name), help, labels, nil)
	}
	return m.registry.Register(&leases{
		stats:     stats,
		decisions: desc("decisions_total", "Requests that were decided out of leases, without asking the shared store."),
		calls:     desc("calls_total", "Calls of the shared store that leases took: for a block of tokens, or to return what was left of one.", "kind"),
		tokens:    desc("tokens_total", "Tokens that were leased from the shared store, and what became of them.", "event"),
		held:      desc("held_tokens", "Leased tokens that can be spent."),
		keys:      desc("keys", "Counters for which tokens are held or demand is measured."),
	})
}

// Describe implements [prometheus.Collector].
func (l *leases) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{l.decisions, l.calls, l.tokens, l.held, l.keys} {
		out <- d
	}
}

// Collect implements [prometheus.Collector].
func (l *leases) Collect(out chan<- prometheus.Metric) {
	s := l.stats()
	send := func(d *prometheus.Desc, kind prometheus.ValueType, n int64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, kind, float64(n), labels...)
	}
	send(l.decisions, prometheus.CounterValue, s.Decisions)
	send(l.calls, prometheus.CounterValue, s.Blocks, "block")
	send(l.calls, prometheus.CounterValue, s.Returns, "return")
	send(l.tokens, prometheus.CounterValue, s.Leased, "leased")
	send(l.tokens, prometheus.CounterValue, s.Spent, "spent")
	send(l.tokens, prometheus.CounterValue, s.Refunded, "refunded")
	send(l.tokens, prometheus.CounterValue, s.GivenBack, "given_back")
	send(l.tokens, prometheus.CounterValue, s.Stranded, "stranded")
	send(l.held, prometheus.GaugeValue, s.Held)
	send(l.keys, prometheus.GaugeValue, int64(s.Keys))
}
