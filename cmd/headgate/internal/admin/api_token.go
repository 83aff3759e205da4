package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// admit finds out whether r may ask for decisions. If it may not, it answers and returns false.
func (a *API) admit(w http.ResponseWriter, r *http.Request) bool {
	tokens := a.settings.Load().Tokens
	if len(tokens) == 0 {
		switch {
		case !a.loopback:
			writeProblem(w, r, problem{Status: http.StatusForbidden,
				Detail: "The decision API is off: its listener is not of this host alone, and the configuration has no api.token_sha256."})
		case !ownHost(r.Host):
			writeProblem(w, r, problem{Status: http.StatusForbidden,
				Detail: "Without api.token_sha256 the decision API answers to localhost and loopback addresses alone, not to the name in Host."})
		default:
			return true
		}
		return false
	}
	token, found := bearer(r.Header)
	switch {
	case !found:
		w.Header().Set("WWW-Authenticate", `Bearer realm="headgate"`)
		writeProblem(w, r, problem{Status: http.StatusUnauthorized, Detail: "A token is required: Authorization: Bearer TOKEN."})
	case !known(tokens, token):
		w.Header().Set("WWW-Authenticate", `Bearer realm="headgate", error="invalid_token"`)
		writeProblem(w, r, problem{Status: http.StatusUnauthorized, Detail: "The token is not known."})
	default:
		return true
	}
	return false
}

// ownHost says whether host, as the request calls this server, is this very host. A page of any site that a browser on it shows can have its name
// lead here, and would then be of the same origin; it cannot choose another name in Host.
func ownHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && addr.Unmap().IsLoopback()
}

// bearer returns the token that h bears; false if none. Two of them are none.
func bearer(h http.Header) (string, bool) {
	values := h["Authorization"]
	if len(values) != 1 {
		return "", false
	}
	scheme, token, found := strings.Cut(values[0], " ")
	return strings.TrimLeft(token, " "), found && strings.EqualFold(scheme, "Bearer")
}

// known compares the digest of token with each of digests in constant time.
func known(digests [][32]byte, token string) bool {
	sum := sha256.Sum256([]byte(token))
	equal := 0
	for i := range digests {
		equal |= subtle.ConstantTimeCompare(digests[i][:], sum[:])
	}
	return equal == 1
}
