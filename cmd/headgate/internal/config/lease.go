package config

import (
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/lease"
	"go.yaml.in/yaml/v4"
)

// maxLease is the longest store.lease.lifetime: so long can tokens be spent that nobody can take back.
const maxLease = time.Minute

// A choice is whether a limit is decided by leases, and where the file says so.
type choice struct {
	leased bool
	line   int
}

// lease reads store.lease.
func (d *decoder) lease(n *yaml.Node, c *Config) {
	const path = "store.lease"
	d.object(n, path, field{name: "lifetime", read: func(v *yaml.Node) {
		d.durationFrom(v, path+".lifetime", "a duration from 10ms to 1m, such as 1s", lease.MinLifetime, maxLease, &c.Lease)
		c.Lease = c.Lease.Truncate(time.Microsecond)
	}})
}

// choose notes whether l is decided by leases. Limits of one name and the same numbers are one to those who decide.
func (d *decoder) choose(n *yaml.Node, path string, l headgate.Limit, leased bool) {
	if leased && !lease.Supports(l.Algorithm) {
		d.fault(n.Line, "%s has lease: true, and %s cannot be leased, since it promises too much of any window; want another algorithm such as sliding-window, or lease left out",
			path, l.Algorithm)
		return
	}
	if first, known := d.choices[l]; known && first.leased != leased {
		d.fault(n.Line, "%s has the limit %s (%s) with another lease than on line %d, want the same in both places, or different names", path, quote(l.Name), l, first.line)
		return
	}
	if d.choices == nil {
		d.choices = make(map[headgate.Limit]choice)
	}
	if _, known := d.choices[l]; !known {
		d.choices[l] = choice{leased, n.Line}
	}
}

// leased returns the limits that are decided by leases; nil = there are none.
func (d *decoder) leased() map[headgate.Limit]bool {
	var list map[headgate.Limit]bool
	for l, c := range d.choices {
		if !c.leased {
			continue
		}
		if list == nil {
			list = make(map[headgate.Limit]bool)
		}
		list[l] = true
	}
	return list
}

// checkLeases notes leases of nothing.
func (d *decoder) checkLeases(c *Config) {
	first := 0
	for _, choice := range d.choices {
		if choice.leased && (first == 0 || choice.line < first) {
			first = choice.line
		}
	}
	if c.Store == nil && first > 0 {
		d.fault(first, `lease: true has no use without a shared store, want store: {redis: {url: "redis://127.0.0.1:6379/0"}}, or lease left out`)
	}
}
