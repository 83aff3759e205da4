package gateway

import (
	"net/http"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/policy"
)

// TenantHeader tells another proxy whose request it was allowed to pass on.
const TenantHeader = "X-Headgate-Tenant"

// Policy returns the policy in force.
func (g *Gateway) Policy() *policy.Policy { return g.state.Load().policy }

// Limiter returns the limiter of routes with this failure mode. Who asks it has the same budgets as the gateway, also while the store
// cannot answer.
func (g *Gateway) Limiter(mode headgate.FailureMode) *headgate.Limiter { return g.limiters[mode] }

// Authorize is ServeHTTP for a request that another proxy will pass on. It charges the request and answers it in the same way where it
// must not pass; where it may, the answer is 200 without a body, and TenantHeader says whose it is.
func (g *Gateway) Authorize(w http.ResponseWriter, r *http.Request) { g.serve(w, r, &g.permits) }

// permit is the end of the way of a request that another proxy passes on. The header is set even for those who have no name, so that
// none that the caller wrote takes its place.
func permit(w http.ResponseWriter, r *http.Request) {
	tenant := policy.Anonymous
	if v, ok := visitOf(r.Context()); ok && v.tenant != "" {
		tenant = v.tenant
	}
	h := w.Header()
	h.Set(TenantHeader, tenant)
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
}
