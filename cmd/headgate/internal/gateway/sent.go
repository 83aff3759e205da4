package gateway

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/meter"
)

// Visit says from the context of a decision which route and whose request it was made for; false = for none of the gateway's.
func Visit(ctx context.Context) (route, tenant string, ok bool) {
	v, ok := visitOf(ctx)
	if !ok {
		return "", "", false
	}
	return v.route.Path, v.tenant, true
}

// limitNames are the names of all limits that a request can meet on a route.
func limitNames(c *config.Config) map[string]bool {
	names := make(map[string]bool)
	add := func(limits []headgate.Limit) {
		for _, l := range limits {
			names[l.Name] = true
		}
	}
	for _, p := range c.Plans {
		add(p.Limits)
	}
	for _, r := range c.Routes {
		add(r.Limits)
		add(r.Total)
	}
	return names
}

// A counting transport counts what really leaves, where it leaves: below everything that may hold a request back or send it again.
type counting struct {
	base  http.RoundTripper // an *http.Transport, or what reports to httptrace as that does
	route *meter.Route
}

// RoundTrip implements [http.RoundTripper].
func (t *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	start := time.Now()
	var sent atomic.Int64 // the transport may try again over another connection
	ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{WroteHeaders: func() {
		sent.Add(1)
		t.route.Sent()
	}})
	resp, err := t.base.RoundTrip(r.WithContext(ctx))
	status := 0
	if err == nil {
		status = resp.StatusCode
	}
	t.route.Over(int(sent.Load()), status, time.Since(start))
	return resp, err
}
