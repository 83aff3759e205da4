// Package admin is the handler of the admin listener, which is not for the public.
package admin

import (
	"encoding/json"
	"net/http"
)

// An Admin is the handler of the admin listener. It is safe for concurrent use once all its handlers are in place.
type Admin struct{ mux *http.ServeMux }

// New returns an Admin that tells of the gateway's health at /healthz and /readyz.
func New(h *Health) *Admin {
	a := &Admin{mux: http.NewServeMux()}
	a.mux.HandleFunc("GET /healthz", h.alive)
	a.mux.HandleFunc("GET /readyz", h.ready)
	return a
}

// Handle adds a handler for the pattern, such as "/v1/". It must not be called once requests are served.
func (a *Admin) Handle(pattern string, h http.Handler) { a.mux.Handle(pattern, h) }

// ServeHTTP implements [http.Handler].
func (a *Admin) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.mux.ServeHTTP(w, r) }

// JSON is a handler that tells what value returns.
func JSON(value func() any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		writeHealth(w, http.StatusOK, value())
	})
}

// writeHealth answers with a value that no cache keeps.
func writeHealth(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // a caller that is gone needs no answer
}
