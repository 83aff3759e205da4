// Package policy is the configuration compiled for decisions: (tenant, route) in, charges and failure mode out. It is pure: it knows
// no HTTP and no clock. A Policy never changes; a new configuration is a new Policy, put in the old one's place as a whole.
package policy

import (
	"slices"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
)

// Anonymous is the name under which all callers without an API key are one tenant. No tenant of a file can have it.
const Anonymous = "*"

// A Policy answers what a tenant is held to on a route. It is safe for concurrent use.
type Policy struct {
	root   node
	routes []*Route
	plans  map[string][]headgate.Charge // by tenant: its plan, each charge of cost 1
	limits map[string][]headgate.Limit  // by plan
	shared bool                         // whether anonymous callers are a tenant
}

// New compiles c.
func New(c *config.Config) *Policy {
	limits := make(map[string][]headgate.Limit, len(c.Plans))
	p := &Policy{
		plans: make(map[string][]headgate.Charge, len(c.Tenants)+1), limits: limits, shared: c.Identity.Anonymous == config.Share,
	}
	for _, plan := range c.Plans {
		limits[plan.Name] = plan.Limits
	}
	for _, t := range c.Tenants {
		p.plans[t.Name] = charges(key("plan", t.Name, ""), limits[t.Plan])
	}
	p.plans[Anonymous] = charges(key("plan", Anonymous, ""), limits[c.Identity.AnonymousPlan])
	for i := range c.Routes {
		r := newRoute(&c.Routes[i])
		p.routes = append(p.routes, r)
		p.root.add(c.Routes[i].Segments, r)
	}
	return p
}

// Routes returns all routes, in the order of the file. The caller must not change the slice.
func (p *Policy) Routes() []*Route { return p.routes }

// Charges returns what one request of tenant on r is charged: its plan, its budget on the route, the route's total. None means that
// nothing limits it. The caller owns the slice.
func (p *Policy) Charges(r *Route, tenant string) []headgate.Charge {
	return slices.Clone(p.ChargesFor(r, Caller{Tenant: tenant}))
}

// key names who pays. It is unambiguous: kind and tenant hold no '|', and the path, which may, comes last.
func key(kind, tenant, path string) string { return kind + "|" + tenant + "|" + path }

// HashTag returns what keys of this program have in common that are charged together: the tenant, whose plan and budgets on routes are then
// one atomic step on a Cluster too, and on any Redis lie in one place. "" for the total of a route, which is everybody's.
func HashTag(key string) string {
	_, rest, _ := strings.Cut(key, "|")
	tenant, _, _ := strings.Cut(rest, "|")
	return tenant
}

// charges is one token of key under each of limits.
func charges(key string, limits []headgate.Limit) []headgate.Charge {
	out := make([]headgate.Charge, len(limits))
	for i, l := range limits {
		out[i] = headgate.Charge{Key: key, Cost: 1, Limit: l}
	}
	return out
}
