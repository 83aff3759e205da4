package gateway

import (
	"net/http"
	"slices"
)

// allowOrigin is the field by which a page may read a response.
const allowOrigin = "Access-Control-Allow-Origin"

// letRead lets the pages of the route's origins read what the gateway answers by itself, such as 401 and 429, and the fields that it
// adds. A preflight is not its business: the upstream answers that.
func (v *visit) letRead(w http.ResponseWriter, r *http.Request) {
	origins := v.route.CORSOrigins
	if len(origins) == 0 {
		return
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if origin == "" || origins[0] != "*" && !slices.Contains(origins, origin) {
		return
	}
	h.Set(allowOrigin, origin)
	h.Add("Access-Control-Expose-Headers", "Retry-After, RateLimit, RateLimit-Policy")
	v.readable = true
}
