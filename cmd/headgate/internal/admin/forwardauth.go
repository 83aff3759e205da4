package admin

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// statusHeader says what the answer would have been, where [forwardOptions.plain] made it 403.
const statusHeader = "X-Headgate-Status"

// forwardAuth decides a request that another proxy has received, and describes in headers, before that proxy passes it on. What it
// answers is what the gateway would, and 200 where that would pass it on. It takes no token: it does nothing for its caller that the
// gateway would not do, and the Authorization of the request is that of the one who is to be authenticated.
func (a *API) forwardAuth(w http.ResponseWriter, r *http.Request) {
	o, err := readForwardOptions(r.URL.RawQuery)
	if err != nil {
		writeFault(w, r, err)
		return
	}
	if o.plain {
		w = &plainRefusal{ResponseWriter: w}
	}
	original, err := received(r, o)
	if err != nil {
		writeFault(w, r, err)
		return
	}
	a.gate.Authorize(w, original)
}

// forwardOptions are chosen by the query of the address that the proxy asks, which its callers have no hand in.
type forwardOptions struct {
	plain     bool // deny=403: nginx passes no other refusal on than 401 and 403
	preflight bool // preflight=pass: the proxy says by itself what the method is, so that a CORS preflight is one
}

func readForwardOptions(query string) (forwardOptions, error) {
	var o forwardOptions
	values, err := url.ParseQuery(query)
	if err != nil {
		return o, &fault{text: "The query cannot be read."}
	}
	for name, list := range values {
		switch {
		case name == "deny" && len(list) == 1 && list[0] == "403":
			o.plain = true
		case name == "preflight" && len(list) == 1 && list[0] == "pass":
			o.preflight = true
		default:
			return o, &fault{excerpt(name), "is not known in the query, want deny=403 or preflight=pass; the proxy must not send its caller's query along."}
		}
	}
	return o, nil
}

// A dialect is the headers by which a kind of proxy describes the request that it has received.
type dialect struct{ uri, method string }

// dialects returns those that are understood: of nginx's documentation, of its ingress controller, and of Traefik and Caddy.
func dialects() []dialect {
	return []dialect{
		{uri: "X-Original-Uri", method: "X-Original-Method"},
		{uri: "X-Original-Url", method: "X-Original-Method"},
		{uri: "X-Forwarded-Uri", method: "X-Forwarded-Method"},
	}
}

// A line is the request line of a request: as far as it matters to whom it is routed.
type line struct {
	method string
	uri    *url.URL
}

// received returns the request that the proxy has received. A caller of a proxy that describes it in one dialect may have written the headers
// of another one, so where several are there, they have to say the same.
func received(r *http.Request, o forwardOptions) (*http.Request, error) {
	var found *line
	for _, d := range dialects() {
		l, err := d.read(r.Header)
		switch {
		case err != nil:
			return nil, err
		case l == nil:
		case found != nil && (found.method != l.method || found.uri.EscapedPath() != l.uri.EscapedPath()):
			return nil, &fault{d.uri, "and its method do not say the same as another header does; let the proxy clear the headers that it does not set."}
		default:
			found = l
		}
	}
	if found == nil {
		return nil, &fault{"X-Forwarded-Uri", "is missing, and so are X-Original-URI and X-Original-URL: the proxy has to say what was asked of it."}
	}
	original := r.WithContext(r.Context())
	original.Header = r.Header.Clone()
	if !o.preflight {
		original.Header.Del("Access-Control-Request-Method") // no preflight: a caller might have written that it is one
	}
	original.Method, original.URL, original.RequestURI = found.method, found.uri, found.uri.RequestURI()
	if host := r.Header.Get("X-Forwarded-Host"); host != "" {
		original.Host = host
	}
	original.Body, original.ContentLength = http.NoBody, 0
	return original, nil
}

var errURI = errors.New("admin: not the target of a request")

// read returns what the headers of this dialect say; nil if they are not there.
func (d dialect) read(h http.Header) (*line, error) {
	switch uris := h[d.uri]; len(uris) {
	case 0:
		return nil, nil
	case 1:
		if uris[0] == "" {
			return nil, nil // nginx does not send what is empty, others do
		}
	default:
		return nil, &fault{d.uri, "comes twice."}
	}
	uri, err := parseTarget(h[d.uri][0])
	if err != nil {
		return nil, &fault{d.uri, "is not the target of a request, want a path such as /partner/ or a URL."}
	}
	l := &line{method: http.MethodGet, uri: uri}
	switch methods := h[d.method]; {
	case len(methods) > 1:
		return nil, &fault{d.method, "comes twice."}
	case len(methods) == 1 && methods[0] != "":
		l.method = methods[0]
	}
	if strings.Trim(l.method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") != "" || len(l.method) > 32 {
		return nil, &fault{d.method, "is not a method."}
	}
	return l, nil
}

// parseTarget reads a path as net/http reads that of a request, or a whole URL.
func parseTarget(s string) (*url.URL, error) {
	if !strings.HasPrefix(s, "/") && !strings.HasPrefix(s, "http://") && !strings.HasPrefix(s, "https://") {
		return nil, errURI
	}
	u, err := url.ParseRequestURI(s)
	if err != nil {
		return nil, err
	}
	if u.Path == "" {
		u.Path = "/"
	}
	return u, nil
}

// A plainRefusal turns each refusal but 401 into 403, and says in a header which it was.
type plainRefusal struct{ http.ResponseWriter }

// WriteHeader implements [http.ResponseWriter].
func (w *plainRefusal) WriteHeader(status int) {
	if status >= http.StatusBadRequest {
		w.Header().Set(statusHeader, strconv.Itoa(status))
		if status != http.StatusUnauthorized {
			status = http.StatusForbidden
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets [http.ResponseController] see what is wrapped.
func (w *plainRefusal) Unwrap() http.ResponseWriter { return w.ResponseWriter }
