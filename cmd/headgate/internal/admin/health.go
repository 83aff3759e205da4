package admin

import (
	"context"
	"net/http"
	"sync/atomic"
)

// Health says how the gateway is. It is safe for concurrent use.
type Health struct {
	checks   []Check
	draining atomic.Bool
}

// A Check returns what is amiss, in a sentence; "" = nothing is. It ends with its context, and soon by itself.
type Check func(context.Context) string

// NewHealth returns the Health of a gateway that takes requests.
func NewHealth(checks ...Check) *Health { return &Health{checks: checks} }

// Drain makes /readyz say that no new request should be sent here.
func (h *Health) Drain() { h.draining.Store(true) }

// Draining says whether Drain was called.
func (h *Health) Draining() bool { return h.draining.Load() }

// A report is the body of /healthz and /readyz.
type report struct {
	Status  string   `json:"status"`
	Reasons []string `json:"reasons,omitempty"`
}

// alive answers 200 as long as the program can answer at all: to end it would help nobody.
func (h *Health) alive(w http.ResponseWriter, _ *http.Request) {
	writeHealth(w, http.StatusOK, report{Status: "ok"})
}

// ready answers 200 while requests may be sent here. That includes a gateway whose store is away: each route says by on_store_error what
// its callers get, and no other gateway would do better. The answer then says that it is degraded, and why.
func (h *Health) ready(w http.ResponseWriter, r *http.Request) {
	if h.Draining() {
		writeHealth(w, http.StatusServiceUnavailable, report{Status: "draining"})
		return
	}
	out := report{Status: "ready"}
	for _, check := range h.checks {
		if reason := check(r.Context()); reason != "" {
			out.Status, out.Reasons = "degraded", append(out.Reasons, reason)
		}
	}
	writeHealth(w, http.StatusOK, out)
}
