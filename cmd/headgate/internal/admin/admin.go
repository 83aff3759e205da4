// Package admin is the handler of the admin listener, which is not for the public.
package admin

import (
	"io"
	"net/http"
	"sync/atomic"
)

// An Admin serves /healthz: 200 while the gateway takes requests, 503 once it drains. It is safe for concurrent use.
type Admin struct {
	mux      *http.ServeMux
	draining atomic.Bool
}

// New returns an Admin of a gateway that takes requests.
func New() *Admin {
	a := &Admin{mux: http.NewServeMux()}
	a.mux.HandleFunc("GET /healthz", a.health)
	return a
}

// Drain makes /healthz say that no new request should be sent here.
func (a *Admin) Drain() { a.draining.Store(true) }

// ServeHTTP implements [http.Handler].
func (a *Admin) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.mux.ServeHTTP(w, r) }

func (a *Admin) health(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	status, body := http.StatusOK, "{\"status\":\"ok\"}\n"
	if a.draining.Load() {
		status, body = http.StatusServiceUnavailable, "{\"status\":\"draining\"}\n"
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body) // a caller that is gone needs no answer
}
