package promlimit

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/headgate/headgate"
	"github.com/prometheus/client_golang/prometheus"
)

// DefaultNamespace begins the names of series where [Config.Namespace] is "".
const DefaultNamespace = "headgate"

// DefaultMaxValues is the MaxValues of a Config that does not set it.
const DefaultMaxValues = 100

// Other is the value of a label for all that did not fit under [Config.MaxValues].
const Other = "other"

// Config configures [New]. It is copied; the zero value is good.
type Config struct {
	// Registerer gets the Observer; nil = nobody does, and the caller registers it.
	Registerer prometheus.Registerer
	// Namespace begins the name of every series. "" = DefaultNamespace.
	Namespace string
	// ConstLabels are on every series, for several observers in one registry. nil = none. None of them may be a label of the package.
	ConstLabels prometheus.Labels
	// Buckets are the upper bounds of the histogram of decision times, in seconds, ascending. nil = from 5 microseconds to 1 second.
	Buckets []float64
	// MaxValues bounds the values of the label limit, and of Label; of their pairs there are at most ten times as many. 0 =
	// DefaultMaxValues; negative is invalid.
	MaxValues int
	// Label is the name of one more label on decisions_total, such as "route"; "" = none.
	Label string
	// LabelOf returns the value of Label from the context that the limiter was called with. It is called for each decision. Required
	// with Label, and not without.
	LabelOf func(context.Context) string
}

// defaultBuckets tell a decision in memory (microseconds) from one over a network (a millisecond) and from a time-out (tens of them).
func defaultBuckets() []float64 {
	return []float64{5e-6, 25e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 1}
}

// check returns cfg with its defaults filled in, or an error that matches [headgate.ErrInvalidConfig].
func (cfg Config) check() (Config, error) {
	if cfg.Namespace == "" {
		cfg.Namespace = DefaultNamespace
	}
	if cfg.MaxValues == 0 {
		cfg.MaxValues = DefaultMaxValues
	}
	if cfg.Buckets == nil {
		cfg.Buckets = defaultBuckets()
	}
	cfg.Buckets = slices.Clone(cfg.Buckets)
	switch {
	case cfg.MaxValues < 0:
		return cfg, invalid("MaxValues %d, want 0 (= %d) or more", cfg.MaxValues, DefaultMaxValues)
	case !validName(cfg.Namespace):
		return cfg, invalid("Namespace %q, want letters, digits and _", cfg.Namespace)
	case !ascending(cfg.Buckets):
		return cfg, invalid("Buckets %v, want ascending bounds in seconds", cfg.Buckets)
	case (cfg.Label == "") != (cfg.LabelOf == nil):
		return cfg, invalid("want Label and LabelOf, or none of them")
	case cfg.Label != "" && (!validName(cfg.Label) || ours(cfg.Label)):
		return cfg, invalid("Label %q, want letters, digits and _, and no label of the package", cfg.Label)
	}
	for name := range cfg.ConstLabels {
		if !validName(name) || ours(name) || name == cfg.Label {
			return cfg, invalid("ConstLabels with %q, want letters, digits and _, and no label of the package", name)
		}
	}
	return cfg, nil
}

// ours says whether a label is one of the package's series, or of a histogram.
func ours(label string) bool {
	return slices.Contains([]string{"limit", "decision", "source", "reason", "to", "le"}, label)
}

// validName says whether s can be the name of a label or begin that of a series, in every version of Prometheus.
func validName(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != "" && (len(s) < 2 || s[:2] != "__")
}

func ascending(bounds []float64) bool {
	for i, b := range bounds {
		if math.IsNaN(b) || i > 0 && b <= bounds[i-1] {
			return false
		}
	}
	return true
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: promlimit: %s", headgate.ErrInvalidConfig, fmt.Sprintf(format, args...))
}
