package admin

import "net/http"

// Protect lets those through to h who may ask the API for decisions.
func (a *API) Protect(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.admit(w, r) {
			h.ServeHTTP(w, r)
		}
	})
}
