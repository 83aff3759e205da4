package meter

import (
	"strconv"
	"sync/atomic"

	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/prometheus/client_golang/prometheus"
)

// reloads collects what is known of the configuration when it is asked.
type reloads struct {
	version                        atomic.Pointer[func() config.Version]
	info, number, good, bad, since *prometheus.Desc
}

func newReloads() *reloads {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(namespace+"_"+name, help, labels, nil)
	}
	r := &reloads{
		info:   desc("config_info", "Always 1: which configuration is in force, by its number since the start and the SHA-256 of its file.", "version", "hash"),
		number: desc("config_version", "Number of the configuration in force: 1 at the start, one more with each reload."),
		good:   desc("config_last_reload_successful", "1 = the file's content is in force, 0 = it was refused and the one before stays."),
		bad:    desc("config_reload_failures_total", "Contents of the file that were refused."),
		since:  desc("config_since_seconds", "When the configuration in force came into force, in seconds since the Unix epoch."),
	}
	none := func() config.Version { return config.Version{Number: 1} }
	r.version.Store(&none)
	return r
}

// Config serves what version returns when it is asked; until then, that of a program without a file. version must be safe for concurrent use.
func (m *Meter) Config(version func() config.Version) { m.reload.version.Store(&version) }

// Describe implements [prometheus.Collector].
func (r *reloads) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{r.info, r.number, r.good, r.bad, r.since} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (r *reloads) Collect(ch chan<- prometheus.Metric) {
	v := (*r.version.Load())()
	good := 1.0
	if v.LastError != "" {
		good = 0
	}
	since := 0.0
	if !v.Since.IsZero() {
		since = float64(v.Since.UnixMilli()) / 1000
	}
	ch <- prometheus.MustNewConstMetric(r.info, prometheus.GaugeValue, 1, strconv.FormatInt(v.Number, 10), v.Hash)
	ch <- prometheus.MustNewConstMetric(r.number, prometheus.GaugeValue, float64(v.Number))
	ch <- prometheus.MustNewConstMetric(r.good, prometheus.GaugeValue, good)
	ch <- prometheus.MustNewConstMetric(r.bad, prometheus.CounterValue, float64(v.Failures))
	ch <- prometheus.MustNewConstMetric(r.since, prometheus.GaugeValue, since)
}
