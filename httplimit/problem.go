package httplimit

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/headgate/headgate"
)

// The problem types of draft-ietf-httpapi-ratelimit-headers, and that of RFC 9457 for a problem that its status says all about.
const (
	typeQuota    = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	typeCapacity = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
	typeStatus   = "about:blank"
)

// WriteDenied answers a denied request with 429 and a problem document (RFC 9457) that names the limits that had no room. It is what
// happens without an OnDenied, and for an OnDenied to end with; called there, the fields are set. A HEAD request gets no body.
func WriteDenied(w http.ResponseWriter, r *http.Request, d headgate.Decision) {
	if o := outcomeFrom(r.Context()); o != nil && o.policies.name(d.Limit) != "" {
		writeDenied(w, r, d, o.policies)
		return
	}
	writeDenied(w, r, d, describe(appendLimits(nil, &d)))
}

func writeDenied(w http.ResponseWriter, r *http.Request, d headgate.Decision, p *policies) {
	b := make([]byte, 0, 384)
	b = append(b, `{"type":"`+typeQuota+`","title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,"detail":"`...)
	b = append(appendDetail(b, d), `","violated-policies":[`...)
	comma := false
	for _, l := range p.limits {
		if !violated(d, l) {
			continue
		}
		if comma {
			b = append(b, ',')
		}
		b, comma = append(b, p.name(l)...), true
	}
	writeProblem(w, r, http.StatusTooManyRequests, append(b, "]}\n"...))
}

// appendDetail writes plain text that needs no escape in JSON.
func appendDetail(b []byte, d headgate.Decision) []byte {
	if d.RetryAfter == headgate.Never {
		return append(b, "The request asks for more than the limit ever grants; waiting does not help."...)
	}
	n := retrySeconds(d)
	b = strconv.AppendInt(append(b, "Retry after "...), n, 10)
	if n == 1 {
		return append(b, " second."...)
	}
	return append(b, " seconds."...)
}

// violated says whether a charge under l had no room.
func violated(d headgate.Decision, l headgate.Limit) bool {
	for i := range d.States {
		if s := &d.States[i]; !s.Allowed && s.Limit == l {
			return true
		}
	}
	return len(d.States) == 0 && d.Limit == l
}

// setDenied sets what every denial has, whoever writes the body.
func setDenied(s *setter, d headgate.Decision) {
	s.set("Cache-Control", "no-store")
	if d.RetryAfter == headgate.Never {
		delete(s.header, "Retry-After")
		return
	}
	s.setInteger("Retry-After", retrySeconds(d))
}

// retrySeconds is at least 1: a caller told to wait for 0 seconds comes back at once, and too early.
func retrySeconds(d headgate.Decision) int64 { return max(1, seconds(d.RetryAfter)) }

// WriteError answers a request that could not be decided, with a problem document (RFC 9457) that tells nothing of err but a
// StatusError's Detail. It is what happens without an OnError, and for an OnError to end with.
//
//	the caller went away                                  499, no body
//	a *StatusError                                        its Status, Detail and Challenge
//	headgate.ErrStore, or the request's deadline is over  503 and Retry-After: 1
//	headgate.ErrInvalidLimit                              500
//	anything else: an error of Key, an unusable key       400
func WriteError(w http.ResponseWriter, r *http.Request, err error) {
	var chosen *StatusError
	switch {
	case errors.Is(err, context.Canceled) && r.Context().Err() != nil:
		w.WriteHeader(StatusClientClosedRequest)
	case errors.As(err, &chosen):
		if chosen.Challenge != "" {
			w.Header().Set("Www-Authenticate", chosen.Challenge)
		}
		writeStatus(w, r, chosen.status(), chosen.Detail)
	case errors.Is(err, headgate.ErrStore), errors.Is(err, context.DeadlineExceeded) && r.Context().Err() != nil:
		w.Header().Set("Retry-After", "1")
		writeProblem(w, r, http.StatusServiceUnavailable, problem(typeCapacity, "Request cannot be satisfied as capacity is temporarily reduced",
			http.StatusServiceUnavailable, "Whether the request is within its limits could not be found out. Retry after 1 second."))
	case errors.Is(err, headgate.ErrInvalidLimit):
		writeStatus(w, r, http.StatusInternalServerError, "")
	default:
		writeStatus(w, r, http.StatusBadRequest, "")
	}
}

// writeStatus writes the problem that is no more than a status. detail "" = a general sentence.
func writeStatus(w http.ResponseWriter, r *http.Request, status int, detail string) {
	if detail == "" {
		switch status {
		case http.StatusBadRequest:
			detail = "The request does not say, in a form that is understood, who it comes from."
		case http.StatusUnauthorized:
			detail = "The request does not say who it comes from."
		case http.StatusForbidden:
			detail = "The caller may not do this."
		default:
			detail = "The request could not be decided."
		}
	}
	title := http.StatusText(status)
	if title == "" {
		title = "Status " + strconv.Itoa(status)
	}
	writeProblem(w, r, status, problem(typeStatus, title, status, detail))
}

// problem returns the document.
func problem(kind, title string, status int, detail string) []byte {
	text, _ := json.Marshal(detail) // a string always has a JSON form
	b := append([]byte(`{"type":"`+kind+`","title":"`+title+`","status":`+strconv.Itoa(status)+`,"detail":`), text...)
	return append(b, "}\n"...)
}

// writeProblem writes the response. Fields that were set for another body go.
func writeProblem(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	h := w.Header()
	delete(h, "Content-Length")
	delete(h, "Content-Encoding")
	delete(h, "Etag")
	delete(h, "Last-Modified")
	h.Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the caller may be gone; nobody else is to be told
	}
}
