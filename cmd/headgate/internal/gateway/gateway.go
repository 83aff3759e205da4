// Package gateway is the reverse proxy: it finds a request's route, asks who calls, has the limits decided together, and passes the
// request on. What it turns away it answers itself, with a problem document (RFC 9457).
package gateway

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/identity"
	"github.com/headgate/headgate/cmd/headgate/internal/meter"
	"github.com/headgate/headgate/cmd/headgate/internal/policy"
	"github.com/headgate/headgate/httplimit"
)

// A Gateway is the handler of the public listener. It is safe for concurrent use.
type Gateway struct {
	log   *slog.Logger
	state atomic.Pointer[state]
	ways  ways // to the upstreams
	fault lull
	meter *meter.Meter

	buffers buffers

	reload sync.Mutex     // held while the state is replaced
	keys   *identity.Keys // of the issuer of tokens; nil = there is none

	limiters [headgate.FailLocal + 1]*headgate.Limiter // by failure mode
	outward  [headgate.FailLocal + 1]*headgate.Limiter // the same, for routes that are outbound
	permits  ways                                      // that end with a permit: see Authorize
}

// ways are, by failure mode, the limiter and what lies behind it.
type ways [headgate.FailLocal + 1]http.Handler

// A state is one configuration, compiled. A request is served by the one under which it came.
type state struct {
	policy     *policy.Policy
	identifier *identity.Identifier
	addresses  *identity.Addresses
	proxies    map[*policy.Route]*upstream
	replicas   int
}

// Options are what a Gateway needs besides its configuration.
type Options struct {
	Store    headgate.Store
	Timeout  time.Duration // per decision, unless the store is headgate.Guarded; 0 = headgate.DefaultTimeout
	Replicas func() int    // gateways that share the store, for routes that fail to local limits; nil = what the configuration says
	Log      *slog.Logger  // nil = slog.Default()
	Meter    *meter.Meter  // counts; its Visit is the one of this package. nil = one that nobody reads
}

// New returns a Gateway for c. It does not own the store.
func New(c *config.Config, o Options) (*Gateway, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Meter == nil {
		var err error
		if o.Meter, err = meter.New(meter.Options{Visit: Visit}); err != nil {
			return nil, err
		}
	}
	g := &Gateway{log: o.Log, meter: o.Meter}
	if o.Replicas == nil {
		o.Replicas = func() int { return g.state.Load().replicas }
	}
	o.Log = oneLineASecond(o.Log) // for all of them together
	for mode := range g.ways {
		if err := g.open(headgate.FailureMode(mode), o); err != nil {
			return nil, err
		}
	}
	if err := g.Reload(c); err != nil {
		return nil, err
	}
	return g, nil
}

// open makes the ways of routes with this failure mode.
func (g *Gateway) open(mode headgate.FailureMode, o Options) error {
	limiter, err := headgate.New(o.Store, nil, headgate.Config{
		OnStoreError: mode, Timeout: o.Timeout, Replicas: o.Replicas, Logger: o.Log, Observer: o.Meter,
	})
	if err != nil {
		return err
	}
	if g.outward[mode], err = headgate.New(o.Store, nil, headgate.Config{ // not observed: what it lets out has been counted as it came in
		OnStoreError: mode, Timeout: o.Timeout, Replicas: o.Replicas, Logger: o.Log,
	}); err != nil {
		return err
	}
	limited, err := httplimit.New(limiter, httplimit.Config{Charges: charges})
	if err != nil {
		return err
	}
	g.limiters[mode], g.ways[mode], g.permits[mode] = limiter, limited(http.HandlerFunc(g.forward)), limited(http.HandlerFunc(permit))
	return nil
}

// Reload puts c in the place of the configuration in force, as a whole. Requests under way go on under the one under which they came.
// What was used of a limit stays used, as long as the limit keeps its name. After an error nothing has changed.
func (g *Gateway) Reload(c *config.Config) error {
	g.reload.Lock()
	defer g.reload.Unlock()
	keys, err := g.keysOf(c)
	if err != nil {
		return err
	}
	s, err := g.compile(c, keys)
	if err != nil {
		if keys != nil && keys != g.keys {
			keys.Close()
		}
		return err
	}
	g.meter.Limits(limitNames(c))
	old := g.state.Swap(s)
	if g.keys != nil && g.keys != keys {
		g.keys.Close()
	}
	g.keys = keys
	if old != nil {
		old.closeIdle()
	}
	return nil
}

// keysOf returns the keys of c's issuer, those in force if they have the same source; nil if tokens are not read.
func (g *Gateway) keysOf(c *config.Config) (*identity.Keys, error) {
	j := c.Identity.JWT
	switch {
	case j == nil:
		return nil, nil
	case g.keys != nil && g.keys.Source() == identity.SourceOf(j):
		return g.keys, nil
	}
	keys, err := identity.NewKeys(j, g.log)
	if err != nil {
		return nil, fmt.Errorf("identity.jwt: %w", err)
	}
	return keys, nil
}

func (g *Gateway) compile(c *config.Config, keys *identity.Keys) (*state, error) {
	addresses, err := identity.NewAddresses(c)
	if err != nil {
		return nil, err
	}
	identifier, err := identity.New(c, keys)
	if err != nil {
		return nil, err
	}
	s := &state{policy: policy.New(c), identifier: identifier, addresses: addresses, proxies: make(map[*policy.Route]*upstream), replicas: 1}
	if c.Store != nil {
		s.replicas = c.Store.Replicas
	}
	for _, r := range s.policy.Routes() {
		if s.proxies[r], err = g.newUpstream(r, addresses, hidden(c)); err != nil {
			return nil, fmt.Errorf("route %s: %w", r.Path, err)
		}
	}
	return s, nil
}

// hidden are the headers that the upstreams do not see, in their canonical form.
func hidden(c *config.Config) []string {
	var names []string
	if !c.Identity.Forward && c.Identity.Header != "" {
		names = append(names, http.CanonicalHeaderKey(c.Identity.Header))
	}
	if j := c.Identity.JWT; j != nil && !j.Forward {
		names = append(names, http.CanonicalHeaderKey(j.Header))
	}
	return names
}

// KeysProblem says why the keys of the issuer of tokens could not be read when that was last tried; "" = they could, or there are none.
func (g *Gateway) KeysProblem() string {
	g.reload.Lock()
	defer g.reload.Unlock()
	if g.keys == nil {
		return ""
	}
	return g.keys.Problem()
}

// Close closes idle connections to the upstreams, and ends what the gateway does in the background. Requests under way are not touched.
func (g *Gateway) Close() {
	g.reload.Lock()
	defer g.reload.Unlock()
	g.state.Load().closeIdle()
	if g.keys != nil {
		g.keys.Close()
	}
}

func (s *state) closeIdle() {
	for _, u := range s.proxies {
		u.transport.CloseIdleConnections()
	}
}

// charges is what the limiter decides for a request that ServeHTTP let through.
func charges(r *http.Request) ([]headgate.Charge, error) {
	v, ok := visitOf(r.Context())
	if !ok {
		return nil, &httplimit.StatusError{Status: http.StatusInternalServerError}
	}
	list := v.policy.ChargesFor(v.route, policy.Caller{Tenant: v.tenant, Plan: v.plan})
	if len(list) == 0 {
		return nil, httplimit.ErrUnlimited
	}
	return list, nil
}

// ServeHTTP implements [http.Handler].
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := newClient(w, r, config.DefaultStallTimeout)
	defer c.end()
	g.serve(c, r, &g.ways)
}

// serve finds out who calls what, and then goes the route's way.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request, to *ways) {
	s := g.state.Load()
	route, err := s.policy.Route(r.URL.EscapedPath())
	switch {
	case errors.Is(err, policy.ErrNoRoute):
		g.meter.Refused(meter.NoRoute)
		notFound(w, r)
		return
	case err != nil:
		g.meter.Refused(meter.AmbiguousPath)
		ambiguousPath(w, r)
		return
	}
	v := &visit{Context: r.Context(), state: s, route: route, meter: g.meter}
	v.client, _ = w.(*client)
	if isPreflight(r) {
		if route.DenyPreflight {
			g.meter.Refused(meter.PreflightOff)
			preflightDenied(w, r)
			return
		}
	} else if v.letRead(w, r); !v.admit(w, r) {
		return
	}
	if !v.fits(w, r) {
		return
	}
	to[route.OnStoreError].ServeHTTP(w, r.WithContext(v))
}

// admit finds out who calls. If that one may not call, it answers and returns false.
func (v *visit) admit(w http.ResponseWriter, r *http.Request) bool {
	caller, err := v.identifier.Identify(r.Context(), r.Header, time.Now())
	switch {
	case err != nil:
		v.meter.Refused(meter.Unidentified)
		unidentified(w, r, v.identifier, err)
		return false
	case v.route.Admits(caller.Tenant):
		v.tenant, v.plan = caller.Tenant, caller.Plan
		return true
	case caller.Tenant == policy.Anonymous:
		v.meter.Refused(meter.Unidentified)
		unidentified(w, r, v.identifier, identity.ErrNoKey)
		return false
	}
	v.meter.Refused(meter.Forbidden)
	forbidden(w, r, "The caller is known, but may not use this path.")
	return false
}

// fits applies what the route says about the caller's side. A body that is too large by its own account is refused before anything is
// charged, one that turns out to be while it is passed on.
func (v *visit) fits(w http.ResponseWriter, r *http.Request) bool {
	if v.client == nil {
		return true
	}
	v.client.stall = v.route.StallTimeout
	if v.route.MaxBody == 0 {
		return true
	}
	if r.ContentLength > v.route.MaxBody {
		v.meter.Refused(meter.BodyTooLarge)
		bodyTooLarge(w, r, v.route)
		return false
	}
	v.client.limitBody(v.route.MaxBody)
	return true
}

// isPreflight says whether a browser asks if it may send a request: without an API key, which it must not send yet.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

// forward passes a request on.
func (g *Gateway) forward(w http.ResponseWriter, r *http.Request) {
	v, ok := visitOf(r.Context())
	if !ok {
		writeProblem(w, r, http.StatusInternalServerError, "The gateway does not know where this request goes.")
		return
	}
	u := v.proxies[v.route]
	if _, decided := httplimit.FromContext(r.Context()); !decided {
		u.meter.Exempt()
	}
	u.meter.Begin()
	defer u.meter.End()
	u.proxy.ServeHTTP(w, r)
}
