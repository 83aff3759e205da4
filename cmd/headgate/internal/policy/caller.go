package policy

import "github.com/headgate/headgate"

// A Caller is who a request comes from, as far as it was shown.
type Caller struct {
	// Tenant is the tenant's name, or Anonymous. One that the file does not list may be a digest of what names it.
	Tenant string
	// Plan is the plan of a tenant that the file does not list. Where the file lists the tenant, it has no say.
	Plan string
}

// ChargesFor returns what one request of c on r is charged, as Charges does. The slice is not the caller's: it must not change it.
func (p *Policy) ChargesFor(r *Route, c Caller) []headgate.Charge {
	var plan []headgate.Charge
	if r.plan {
		plan = p.planOf(c)
	}
	if len(r.limits)+len(r.total) == 0 {
		return plan
	}
	out := make([]headgate.Charge, 0, len(plan)+len(r.limits)+len(r.total))
	out = append(out, plan...)
	if len(r.limits) > 0 {
		k := key("route", c.Tenant, r.Path)
		for _, l := range r.limits {
			out = append(out, headgate.Charge{Key: k, Cost: 1, Limit: l})
		}
	}
	return append(out, r.total...)
}

func (p *Policy) planOf(c Caller) []headgate.Charge {
	if plan, listed := p.plans[c.Tenant]; listed {
		return plan
	}
	return charges(key("plan", c.Tenant, ""), p.limits[c.Plan])
}
