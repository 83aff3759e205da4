package otellimit

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/headgate/headgate"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

var outcomeNames = [2]string{"denied", "allowed"}

// A series is a limit, an outcome and a source: its attributes, and the same as an option of the counter.
type series struct {
	attributes []attribute.KeyValue
	option     []metric.AddOption
}

// limits knows the series of the limits that were met. What was met before it finds without a lock and without allocating.
type limits struct {
	most  int // limits, besides Other
	known atomic.Pointer[map[headgate.Limit]*[2][headgate.Sources]series]
	other *[2][headgate.Sources]series
	mu    sync.Mutex
}

func newLimits(most int) *limits {
	l := &limits{most: most, other: newSeries(Other)}
	l.known.Store(&map[headgate.Limit]*[2][headgate.Sources]series{})
	return l
}

// of returns the series of a decision, whose source is a known one.
func (l *limits) of(d *headgate.Decision) *series {
	limit := d.Limit
	if limit.Name != "" {
		limit = headgate.Limit{Name: limit.Name}
	}
	known := *l.known.Load()
	list := known[limit]
	if list == nil {
		list = l.other
		if len(known) < l.most {
			list = l.meet(limit)
		}
	}
	outcome := 0
	if d.Allowed {
		outcome = 1
	}
	return &list[outcome][d.Source]
}

// meet returns the series of a limit that was not met before: those of its own, while there is room.
func (l *limits) meet(limit headgate.Limit) *[2][headgate.Sources]series {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := *l.known.Load()
	if list := known[limit]; list != nil {
		return list
	}
	if len(known) >= l.most {
		return l.other
	}
	name := limit.Name
	if name == "" {
		name = limit.String()
	}
	list := newSeries(name)
	grown := maps.Clone(known)
	grown[limit] = list
	l.known.Store(&grown)
	return list
}

func newSeries(limit string) *[2][headgate.Sources]series {
	var list [2][headgate.Sources]series
	for outcome := range list {
		for source := range list[outcome] {
			attributes := []attribute.KeyValue{
				attribute.String("headgate.limit", limit), attribute.String("headgate.decision", outcomeNames[outcome]),
				attribute.String("headgate.source", headgate.Source(source).String()),
			}
			list[outcome][source] = series{attributes, []metric.AddOption{set(attributes...)}}
		}
	}
	return &list
}
