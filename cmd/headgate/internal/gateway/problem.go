package gateway

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/headgate/headgate/cmd/headgate/internal/identity"
)

func notFound(w http.ResponseWriter, r *http.Request) {
	writeProblem(w, r, http.StatusNotFound, "No route leads to this path.")
}

func ambiguousPath(w http.ResponseWriter, r *http.Request) {
	writeProblem(w, r, http.StatusBadRequest, "The path can be read in several ways, which lead to different routes. Send it without '..', '//', "+
		"'\\', ';' and encoded slashes.")
}

func forbidden(w http.ResponseWriter, r *http.Request) {
	writeProblem(w, r, http.StatusForbidden, "The API key is known, but may not be used on this path.")
}

func preflightDenied(w http.ResponseWriter, r *http.Request) {
	writeProblem(w, r, http.StatusForbidden, "This path is not for browsers: it takes no CORS preflight.")
}

// unauthorized says in which header a key is wanted. It does not repeat the one that was sent.
func unauthorized(w http.ResponseWriter, r *http.Request, header string, why error) {
	w.Header().Set("WWW-Authenticate", `APIKey realm="headgate", header="`+header+`"`)
	detail := "An API key is required. Send it in the header " + header + "."
	if errors.Is(why, identity.ErrUnknownKey) {
		detail = "The API key in the header " + header + " is not known."
	}
	writeProblem(w, r, http.StatusUnauthorized, detail)
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
