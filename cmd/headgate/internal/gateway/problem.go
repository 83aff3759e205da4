package gateway

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/headgate/headgate/cmd/headgate/internal/identity"
	"github.com/headgate/headgate/cmd/headgate/internal/policy"
	"github.com/headgate/headgate/httplimit"
)

func notFound(w http.ResponseWriter, r *http.Request) {
	writeProblem(w, r, http.StatusNotFound, "No route leads to this path.")
}

func ambiguousPath(w http.ResponseWriter, r *http.Request) {
	writeProblem(w, r, http.StatusBadRequest, "The path can be read in several ways, which lead to different routes. Send it without '..', '//', "+
		"'\\', ';' and encoded slashes.")
}

func forbidden(w http.ResponseWriter, r *http.Request, detail string) {
	writeProblem(w, r, http.StatusForbidden, detail)
}

func preflightDenied(w http.ResponseWriter, r *http.Request) {
	writeProblem(w, r, http.StatusForbidden, "This path is not for browsers: it takes no CORS preflight.")
}

// unidentified answers a request of which it is not known whose it is.
func unidentified(w http.ResponseWriter, r *http.Request, id *identity.Identifier, why error) {
	switch {
	case r.Context().Err() != nil: // the caller went away while the issuer's keys were read
		w.WriteHeader(httplimit.StatusClientClosedRequest)
	case errors.Is(why, identity.ErrNoKeys):
		w.Header().Set("Retry-After", "1")
		writeProblem(w, r, http.StatusServiceUnavailable, "Tokens cannot be verified at the moment. Retry after 1 second.")
	case errors.Is(why, identity.ErrNoTenant):
		forbidden(w, r, "The token is genuine, but names nobody who may call.")
	default:
		for _, challenge := range id.Challenges(why) {
			w.Header().Add("WWW-Authenticate", challenge)
		}
		writeProblem(w, r, http.StatusUnauthorized, id.Detail(why))
	}
}

func bodyTooLarge(w http.ResponseWriter, r *http.Request, route *policy.Route) {
	endConnection(w, r)
	writeProblem(w, r, http.StatusRequestEntityTooLarge, "The body has more than the "+strconv.FormatInt(route.MaxBody, 10)+" bytes that are taken here.")
}

func requestTimeout(w http.ResponseWriter, r *http.Request) {
	endConnection(w, r)
	writeProblem(w, r, http.StatusRequestTimeout, "The rest of the request did not arrive in time.")
}

// endConnection keeps the rest of a body from being waited for. With HTTP/2 there is none to get past.
func endConnection(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
}

func badGateway(w http.ResponseWriter, r *http.Request) {
	writeProblem(w, r, http.StatusBadGateway, "The upstream could not be reached, or gave no valid response.")
}

func gatewayTimeout(w http.ResponseWriter, r *http.Request) {
	writeProblem(w, r, http.StatusGatewayTimeout, "The upstream did not respond in time.")
}

// writeProblem answers with a problem document that no cache keeps.
func writeProblem(w http.ResponseWriter, r *http.Request, status int, detail string) {
	body, err := json.Marshal(struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{"about:blank", http.StatusText(status), status, detail})
	if err != nil { // strings and a number always have a JSON form
		body = nil
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(append(body, '\n')) // the caller may be gone; nobody else is to be told
	}
}
