package config

import (
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/outbound"
	"go.yaml.in/yaml/v4"
)

// Bounds of routes[].outbound.
const (
	maxOutboundWait = 10 * time.Minute
	maxRetries      = 10
)

// Outbound says that a route's upstream is somebody else's, who holds the gateway to a limit and may ask for a pause.
type Outbound struct {
	MaxWait   time.Duration    // how long a request may wait for its turn; 0 = not at all
	MaxPause  time.Duration    // the longest pause that the upstream can ask for
	PerTenant bool             // whether each tenant has Limits and pauses of its own; otherwise all callers of the route share them
	Retries   int              // how often a request may be sent again
	Limits    []headgate.Limit // what the upstream allows, charged as a request is about to be sent; none = pauses alone
}

// outbound reads routes[].outbound. The names of its limits begin with the path of r, which has been read.
func (d *decoder) outbound(n *yaml.Node, path string, r *Route) {
	o := &Outbound{MaxPause: outbound.DefaultMaxPause}
	d.object(n, path,
		field{name: "max_wait", read: func(v *yaml.Node) { d.durationOrZero(v, path+".max_wait", maxOutboundWait, &o.MaxWait) }},
		field{name: "max_pause", read: func(v *yaml.Node) { d.duration(v, path+".max_pause", outbound.LongestPause, &o.MaxPause) }},
		field{name: "key", read: func(v *yaml.Node) {
			if i, ok := d.choice(v, path+".key", "route", "tenant"); ok {
				o.PerTenant = i == 1
			}
		}},
		field{name: "retries", read: func(v *yaml.Node) { d.integer(v, path+".retries", 0, maxRetries, &o.Retries) }},
		field{name: "limits", read: func(v *yaml.Node) { o.Limits = d.outboundLimits(v, path+".limits", r.Path+" outbound") }})
	if o.Retries > 0 && o.MaxWait == 0 {
		d.fault(n.Line, "%s has retries and no max_wait, so there is no time to send again; want for example max_wait: 2s beside it", path)
	}
	if len(o.Limits) >= headgate.MaxCharges {
		d.fault(n.Line, "%s.limits has %d limits, want fewer than %d", path, len(o.Limits), headgate.MaxCharges)
	}
	r.Outbound = o
}

// outboundLimits reads limits of which none is leased: each request asks the store about pauses anyway.
func (d *decoder) outboundLimits(n *yaml.Node, path, owner string) []headgate.Limit {
	list := d.limits(n, path, owner)
	for _, l := range list {
		if d.choices[l].leased {
			d.fault(n.Line, "%s has lease: true, which has no use where each request asks the store about pauses; want lease left out", path)
		}
	}
	return list
}
