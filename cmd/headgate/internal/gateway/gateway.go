// Package gateway is the reverse proxy: it finds a request's route, asks who calls, has the limits decided together, and passes the
// request on. What it turns away it answers itself, with a problem document (RFC 9457).
package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/identity"
	"github.com/headgate/headgate/cmd/headgate/internal/policy"
	"github.com/headgate/headgate/httplimit"
)

// A Gateway is the handler of the public listener. It is safe for concurrent use.
type Gateway struct {
	log   *slog.Logger
	state atomic.Pointer[state]
	ways  [headgate.FailLocal + 1]http.Handler // by failure mode: the limiter, then the upstream
	fault lull
}

// A state is one configuration, compiled. A request is served by the one under which it came.
type state struct {
	policy     *policy.Policy
	identifier *identity.Identifier
	addresses  *identity.Addresses
	proxies    map[*policy.Route]*upstream
}

// Options are what a Gateway needs besides its configuration.
type Options struct {
	Store    headgate.Store
	Timeout  time.Duration // per decision; 0 = headgate.DefaultTimeout
	Replicas int           // gateways that share the store, for routes that fail to local limits
	Log      *slog.Logger  // nil = slog.Default()
}

// New returns a Gateway for c. It does not own the store.
func New(c *config.Config, o Options) (*Gateway, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	g := &Gateway{log: o.Log}
	for mode := range g.ways {
		way, err := g.way(headgate.FailureMode(mode), o)
		if err != nil {
			return nil, err
		}
		g.ways[mode] = way
	}
	s, err := g.compile(c)
	if err != nil {
		return nil, err
	}
	g.state.Store(s)
	return g, nil
}

// way returns the handler of routes with this failure mode: the limits and behind them the upstream.
func (g *Gateway) way(mode headgate.FailureMode, o Options) (http.Handler, error) {
	limiter, err := headgate.New(o.Store, nil, headgate.Config{
		OnStoreError: mode, Timeout: o.Timeout, Replicas: func() int { return o.Replicas }, Logger: o.Log,
	})
	if err != nil {
		return nil, err
	}
	limited, err := httplimit.New(limiter, httplimit.Config{Charges: charges})
	if err != nil {
		return nil, err
	}
	return limited(http.HandlerFunc(g.forward)), nil
}

func (g *Gateway) compile(c *config.Config) (*state, error) {
	addresses, err := identity.NewAddresses(c)
	if err != nil {
		return nil, err
	}
	s := &state{policy: policy.New(c), identifier: identity.New(c), addresses: addresses, proxies: make(map[*policy.Route]*upstream)}
	hide := s.identifier.Header()
	if c.Identity.Forward {
		hide = ""
	}
	for _, r := range s.policy.Routes() {
		s.proxies[r] = g.newUpstream(r, addresses, hide)
	}
	return s, nil
}

// Close closes idle connections to the upstreams. Requests under way are not touched.
func (g *Gateway) Close() {
	for _, u := range g.state.Load().proxies {
		u.transport.CloseIdleConnections()
	}
}

// A visit is what is known of a request once it is known who calls what.
type visit struct {
	*state
	route  *policy.Route
	tenant string
}

type visitKey struct{}

// charges is what the limiter decides for a request that ServeHTTP let through.
func charges(r *http.Request) ([]headgate.Charge, error) {
	v, ok := r.Context().Value(visitKey{}).(*visit)
	if !ok {
		return nil, &httplimit.StatusError{Status: http.StatusInternalServerError}
	}
	list := v.policy.Charges(v.route, v.tenant)
	if len(list) == 0 {
		return nil, httplimit.ErrUnlimited
	}
	return list, nil
}

// ServeHTTP implements [http.Handler].
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s := g.state.Load()
	route, err := s.policy.Route(r.URL.EscapedPath())
	switch {
	case errors.Is(err, policy.ErrNoRoute):
		notFound(w, r)
		return
	case err != nil:
		ambiguousPath(w, r)
		return
	}
	v := &visit{state: s, route: route}
	if isPreflight(r) {
		if route.DenyPreflight {
			preflightDenied(w, r)
			return
		}
	} else if !v.admit(w, r) {
		return
	}
	g.ways[route.OnStoreError].ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), visitKey{}, v)))
}

// admit finds out who calls. If that one may not call, it answers and returns false.
func (v *visit) admit(w http.ResponseWriter, r *http.Request) bool {
	tenant, err := v.identifier.Identify(r.Header)
	switch {
	case err != nil:
		unauthorized(w, r, v.identifier.Header(), err)
		return false
	case v.route.Admits(tenant):
		v.tenant = tenant
		return true
	case tenant == policy.Anonymous:
		unauthorized(w, r, v.identifier.Header(), identity.ErrNoKey)
		return false
	}
	forbidden(w, r)
	return false
}

// isPreflight says whether a browser asks if it may send a request: without an API key, which it must not send yet.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

// forward passes a request on.
func (g *Gateway) forward(w http.ResponseWriter, r *http.Request) {
	v, ok := r.Context().Value(visitKey{}).(*visit)
	if !ok {
		writeProblem(w, r, http.StatusInternalServerError, "The gateway does not know where this request goes.")
		return
	}
	v.proxies[v.route].proxy.ServeHTTP(w, r)
}
