package policy

import (
	"net/url"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
)

// A Route is where the requests under a path go, and what holds for them. It never changes.
type Route struct {
	Path          string // "/" or "/a/b"
	Upstream      *url.URL
	OnStoreError  headgate.FailureMode
	Timeout       time.Duration // until the upstream's response begins
	DenyPreflight bool          // whether CORS preflights are turned away
	MaxBody       int64         // bytes of a request's body; 0 = any
	StallTimeout  time.Duration // how long a caller may neither send nor take a byte that is waited for
	CORSOrigins   []string      // whose pages may read what the gateway itself answers; "*" = everybody's
	Outbound      *Outbound     // what holds on the way out; nil = nothing

	plan    bool
	limits  []headgate.Limit
	total   []headgate.Charge
	tenants map[string]bool // nil = everyone
}

func newRoute(c *config.Route) *Route {
	r := &Route{
		Path: c.Path, Upstream: c.Upstream, OnStoreError: c.OnStoreError, Timeout: c.Timeout, DenyPreflight: c.DenyPreflight,
		MaxBody: c.MaxBody, StallTimeout: c.StallTimeout, CORSOrigins: c.CORSOrigins,
		plan: c.Plan, limits: c.Limits, total: charges(key("total", "", c.Path), c.Total),
	}
	if c.Outbound != nil {
		r.Outbound = newOutbound(c)
	}
	if c.Tenants != nil {
		r.tenants = make(map[string]bool, len(c.Tenants))
		for _, name := range c.Tenants {
			r.tenants[name] = true
		}
	}
	return r
}

// Admits says whether tenant may call the route.
func (r *Route) Admits(tenant string) bool { return r.tenants == nil || r.tenants[tenant] }
