package gateway

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/policy"
	"github.com/headgate/headgate/httplimit"
	"github.com/headgate/headgate/outbound"
)

// errNoVisit is a request on its way out that did not come in through ServeHTTP.
var errNoVisit = errors.New("the gateway does not know whose request this is")

// newOutbound returns what stands before base on a route that is outbound. A route of a new configuration finds the pauses of the old one in
// the store.
func (g *Gateway) newOutbound(base http.RoundTripper, r *policy.Route, o outbound.Observer) (*outbound.Transport, error) {
	return outbound.NewTransport(base, g.outward[r.OnStoreError], outbound.Config{
		MaxWait: r.Outbound.MaxWait, MaxPause: r.Outbound.MaxPause, Retries: r.Outbound.Retries, Observer: o,
		Charges: func(req *http.Request) ([]headgate.Charge, error) {
			tenant, err := tenantOf(req)
			return r.Outbound.Charges(tenant), err
		},
		PauseKey: func(req *http.Request) (string, error) {
			tenant, err := tenantOf(req)
			return r.Outbound.Key(tenant), err
		},
	})
}

func tenantOf(req *http.Request) (string, error) {
	v, ok := visitOf(req.Context())
	if !ok {
		return "", errNoVisit
	}
	return v.tenant, nil
}

// answeredLimited answers a request that was held back on its way out, and says whether err is that. A pause is the upstream's doing, so it is 503;
// a limit is 429, as it is on the way in; and as there, what was not sent costs nothing.
func (g *Gateway) answeredLimited(w http.ResponseWriter, r *http.Request, err error) bool {
	var limited *outbound.LimitedError
	if errors.As(err, &limited) || errors.Is(err, headgate.ErrStore) {
		g.giveBack(r)
	}
	switch {
	case limited != nil:
		if limited.RetryAfter != headgate.Never {
			retryAfter(w, limited.RetryAfter)
		}
		if limited.Paused {
			writeProblem(w, r, http.StatusServiceUnavailable, "The upstream has asked for a pause. The request was not sent.")
		} else {
			writeProblem(w, r, http.StatusTooManyRequests, "The upstream is sent no more requests for now. This one was not sent.")
		}
	case errors.Is(err, headgate.ErrStore):
		retryAfter(w, time.Second)
		writeProblem(w, r, http.StatusServiceUnavailable, "It cannot be decided whether the upstream may be sent the request.")
	default:
		return false
	}
	return true
}

// giveBack returns what r was charged as it came in. Nobody is to be told if that fails: then it was spent.
func (g *Gateway) giveBack(r *http.Request) {
	ctx := r.Context()
	v, known := visitOf(ctx)
	d, decided := httplimit.FromContext(ctx)
	list, err := charges(r)
	if !known || !decided || err != nil {
		return
	}
	_ = g.limiters[v.route.OnStoreError].GiveBack(context.WithoutCancel(ctx), d, list[0], list[1:]...)
}

// retryAfter writes whole seconds, rounded up.
func retryAfter(w http.ResponseWriter, d time.Duration) {
	seconds := max(1, int64((d+time.Second-1)/time.Second))
	w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
}
