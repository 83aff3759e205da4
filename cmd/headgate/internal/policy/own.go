package policy

import "github.com/headgate/headgate"

// Knows says whether the file lists the tenant. Anonymous is one where anonymous callers share.
func (p *Policy) Knows(tenant string) bool {
	_, found := p.plans[tenant]
	return found && (tenant != Anonymous || p.shared)
}

// Own returns what of Charges is the tenant's alone: its plan and its budget on the route, without the route's total. The caller owns
// the slice.
func (p *Policy) Own(r *Route, tenant string) []headgate.Charge {
	list := p.Charges(r, tenant)
	return list[:len(list)-len(r.total)]
}
