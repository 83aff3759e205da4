package policy

import (
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
)

// An Outbound is what holds for the requests of a route on their way to the upstream, besides what they were charged as they came in.
type Outbound struct {
	MaxWait  time.Duration
	MaxPause time.Duration
	Retries  int

	path      string
	perTenant bool
	limits    []headgate.Limit
}

func newOutbound(c *config.Route) *Outbound {
	o := c.Outbound
	return &Outbound{MaxWait: o.MaxWait, MaxPause: o.MaxPause, Retries: o.Retries, path: c.Path, perTenant: o.PerTenant, limits: o.Limits}
}

// Key names whom the upstream's limits and pauses hold for: all callers of the route, or the tenant.
func (o *Outbound) Key(tenant string) string {
	if !o.perTenant {
		tenant = ""
	}
	return key("outbound", tenant, o.path)
}

// Charges returns what a request of tenant is charged as it is about to be sent. The caller owns the slice.
func (o *Outbound) Charges(tenant string) []headgate.Charge { return charges(o.Key(tenant), o.limits) }
