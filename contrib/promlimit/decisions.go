package promlimit

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/headgate/headgate"
	"github.com/prometheus/client_golang/prometheus"
)

// decisions counts decisions by limit and label. What it has met before it finds without a lock and without allocating.
type decisions struct {
	vec     *prometheus.CounterVec
	labeled bool
	max     int // values of a label, besides Other

	known  *atomic.Pointer[map[series]*children]
	mu     *sync.Mutex
	limits map[headgate.Limit]string // the values that they have; with mu
	labels map[string]string         // the same for the further label; with mu
}

// A series is what is counted together: the limit holds nothing but its name, if it has one.
type series struct {
	label string
	limit headgate.Limit
}

// children are the counters of a series by decision and source, made when they are first needed.
type children struct {
	label, limit string
	counters     [2][headgate.Sources]atomic.Pointer[prometheus.Counter]
}

func newDecisions(vec *prometheus.CounterVec, cfg Config) decisions {
	d := decisions{
		vec: vec, labeled: cfg.Label != "", max: cfg.MaxValues, known: new(atomic.Pointer[map[series]*children]), mu: new(sync.Mutex),
		limits: make(map[headgate.Limit]string), labels: make(map[string]string),
	}
	d.known.Store(&map[series]*children{})
	return d
}

// count counts one decision.
func (d *decisions) count(label string, limit *headgate.Limit, allowed bool, source headgate.Source) {
	s := series{label: label, limit: *limit}
	if limit.Name != "" {
		s.limit = headgate.Limit{Name: limit.Name}
	}
	c := (*d.known.Load())[s]
	if c == nil {
		c = d.meet(s)
	}
	outcome := 0
	if allowed {
		outcome = 1
	}
	slot := &c.counters[outcome][source]
	counter := slot.Load()
	if counter == nil {
		counter = d.child(c, outcome, source)
		slot.Store(counter)
	}
	(*counter).Inc()
}

var outcomeNames = [2]string{"denied", "allowed"}

func (d *decisions) child(c *children, outcome int, source headgate.Source) *prometheus.Counter {
	values := []string{c.limit, outcomeNames[outcome], source.String()}
	if d.labeled {
		values = append(values, c.label)
	}
	counter := d.vec.WithLabelValues(values...)
	return &counter
}

// maxPairs times MaxValues bounds the pairs of a limit and a further label.
const maxPairs = 10

// meet returns the children of a series that was not met before. Once a label has all the values that it may have, what is new shares
// the children of [Other], and is not remembered.
func (d *decisions) meet(s series) *children {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := *d.known.Load()
	if c := known[s]; c != nil {
		return c
	}
	limit, label := d.limitValue(s.limit), d.labelValue(s.label)
	if len(known) >= maxPairs*d.max {
		limit, label = Other, Other
	}
	if limit == Other {
		s.limit = headgate.Limit{Name: Other}
	}
	if label == Other {
		s.label = Other
	}
	if c := known[s]; c != nil {
		return c
	}
	c := &children{label: label, limit: limit}
	// Both decisions of the store exist from the start, so that the first denial is an increase to Prometheus.
	for outcome := range c.counters {
		c.counters[outcome][headgate.FromStore].Store(d.child(c, outcome, headgate.FromStore))
	}
	grown := maps.Clone(known)
	grown[s] = c
	d.known.Store(&grown)
	return c
}

func (d *decisions) limitValue(limit headgate.Limit) string {
	if v, ok := d.limits[limit]; ok {
		return v
	}
	if len(d.limits) >= d.max {
		return Other
	}
	v := limit.Name
	if v == "" {
		v = limit.String()
	}
	v = text(v)
	d.limits[limit] = v
	return v
}

func (d *decisions) labelValue(label string) string {
	if v, ok := d.labels[label]; ok {
		return v
	}
	if len(d.labels) >= d.max {
		return Other
	}
	v := text(label)
	d.labels[label] = v
	return v
}

// maxText bounds the values of labels, in bytes.
const maxText = 256

// text makes a value out of what may be anything: Prometheus refuses what is not UTF-8.
func text(s string) string {
	if len(s) > maxText {
		s = s[:maxText]
	}
	return strings.ToValidUTF8(strings.Clone(s), "\uFFFD")
}
