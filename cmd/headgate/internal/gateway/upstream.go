package gateway

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/identity"
	"github.com/headgate/headgate/cmd/headgate/internal/meter"
	"github.com/headgate/headgate/cmd/headgate/internal/policy"
	"github.com/headgate/headgate/httplimit"
)

// Bounds of connections to an upstream.
const (
	dialTimeout     = 5 * time.Second
	idleTimeout     = 90 * time.Second
	maxIdlePerRoute = 256
)

// An upstream is the way out of one route.
type upstream struct {
	proxy     *httputil.ReverseProxy
	transport *http.Transport
	meter     *meter.Route
}

// newUpstream returns the way out of r. hide are the headers that the upstream must not see, in their canonical form.
func (g *Gateway) newUpstream(r *policy.Route, addresses *identity.Addresses, hide []string) (*upstream, error) {
	transport := &http.Transport{
		DialContext:           (&net.Dialer{Timeout: min(dialTimeout, r.Timeout), KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		TLSHandshakeTimeout:   min(dialTimeout, r.Timeout),
		ResponseHeaderTimeout: r.Timeout,
		ExpectContinueTimeout: time.Second,
		MaxIdleConns:          0,
		MaxIdleConnsPerHost:   maxIdlePerRoute,
		IdleConnTimeout:       idleTimeout,
		DisableCompression:    true, // bytes pass as they are
	}
	u := &upstream{transport: transport, meter: g.meter.Route(r.Path)}
	var out http.RoundTripper = &counting{transport, u.meter}
	if r.Outbound != nil {
		var err error
		if out, err = g.newOutbound(out, r, u.meter); err != nil {
			return nil, err
		}
	}
	u.proxy = &httputil.ReverseProxy{
		Transport:      out,
		Rewrite:        func(pr *httputil.ProxyRequest) { rewrite(pr, r, addresses, hide) },
		ModifyResponse: ownFields,
		ErrorHandler:   g.upstreamError,
		BufferPool:     &g.buffers,
		ErrorLog:       slog.NewLogLogger(g.log.Handler(), slog.LevelDebug),
	}
	return u, nil
}

// rewrite makes the upstream's request. ReverseProxy has already taken away hop-by-hop fields and what the caller said about whom it
// forwards for; only of a trusted proxy is that put back.
func rewrite(pr *httputil.ProxyRequest, r *policy.Route, addresses *identity.Addresses, hide []string) {
	pr.SetURL(r.Upstream)
	pr.Out.URL.RawQuery = pr.In.URL.RawQuery // as it came: nothing here was decided by it
	for _, name := range hide {
		delete(pr.Out.Header, name)
	}
	pr.Out.Header.Del(TenantHeader) // what forward-auth says of a caller, no caller says of itself
	if !addresses.TrustsPeer(pr.In) {
		pr.Out.Header.Del("X-Real-Ip")
		pr.SetXForwarded()
		return
	}
	pr.Out.Header["X-Forwarded-For"] = pr.In.Header["X-Forwarded-For"]
	pr.SetXForwarded() // appends the proxy to X-Forwarded-For
	for _, name := range []string{"Forwarded", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if said := pr.In.Header[name]; len(said) > 0 {
			pr.Out.Header[name] = said
		}
	}
}

// ownFields keeps the response's rate limit fields to one set: that of the gateway, which is already in place where it decided.
func ownFields(resp *http.Response) error {
	if _, decided := httplimit.FromContext(resp.Request.Context()); decided {
		delete(resp.Header, "Ratelimit") // in the canonical form, which Del would first have to make
		delete(resp.Header, "Ratelimit-Policy")
	}
	if v, ok := visitOf(resp.Request.Context()); ok && v.readable {
		resp.Header.Del(allowOrigin)
	}
	return nil
}

// upstreamError answers a request of which the upstream made nothing.
func (g *Gateway) upstreamError(w http.ResponseWriter, r *http.Request, err error) {
	if v, ok := visitOf(r.Context()); ok && v.callersFault(w, r) { // before the next: a caller that stalls ends the context too
		return
	}
	if r.Context().Err() != nil { // the caller went away: nobody is to be told, and the upstream is not at fault
		w.WriteHeader(httplimit.StatusClientClosedRequest)
		return
	}
	if g.answeredLimited(w, r, err) {
		return
	}
	if held, now := g.fault.pass(time.Now()); now {
		g.log.LogAttrs(r.Context(), slog.LevelWarn, "upstream failed", visited(r), slog.Int64("not_logged", held), slog.Any("error", err))
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		gatewayTimeout(w, r)
		return
	}
	badGateway(w, r)
}

// visited tells the log where r went, and for whom.
func visited(r *http.Request) slog.Attr {
	v, ok := visitOf(r.Context())
	if !ok {
		return slog.Attr{}
	}
	return slog.Group("request", slog.String("route", v.route.Path), slog.String("tenant", v.tenant), slog.String("client", v.addresses.Client(r)))
}
