package admin

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"

	"github.com/headgate/headgate"
)

// typeCapacity is the problem type of draft-ietf-httpapi-ratelimit-headers for a server that cannot do all that it could.
const typeCapacity = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"

// instantForm is RFC 3339 with the microseconds that a store's clock has.
const instantForm = "2006-01-02T15:04:05.000000Z07:00"

// A problem is the body of a refusal (RFC 9457).
type problem struct {
	Type   string `json:"type"`  // "" = about:blank
	Title  string `json:"title"` // "" = that of the status
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Field  string `json:"field,omitempty"` // of the request, that is at fault
}

// A state is what one charge found. What is not known, since no store decided, is null.
type state struct {
	Name         string  `json:"name"`
	Limit        *string `json:"limit"`
	Allowed      bool    `json:"allowed"`
	Remaining    *int64  `json:"remaining"`
	RetryAfter   *int64  `json:"retry_after"`    // in whole seconds, rounded up; null = never
	RetryAfterMS *int64  `json:"retry_after_ms"` // the same in milliseconds
	ResetAfterMS *int64  `json:"reset_after_ms"`
	Never        bool    `json:"never"` // whether the request cannot pass however long it waits
}

// A decision is a [headgate.Decision] for programs to read: the state of the binding limit, and those of all charges.
type decision struct {
	state
	Source string  `json:"source"`
	At     *string `json:"at"`
	States []state `json:"states"`
}

// done is the answer to what has no result.
type done struct {
	Done bool `json:"done"`
}

func newDecision(d headgate.Decision) decision {
	out := decision{Source: d.Source.String(), States: []state{}}
	if d.Source == headgate.FromOpen { // nobody looked
		zero := int64(0)
		out.state = state{Allowed: d.Allowed, RetryAfter: &zero, RetryAfterMS: &zero}
		return out
	}
	out.state = newState(headgate.State{
		Limit: d.Limit, Allowed: d.Allowed, Remaining: d.Remaining, RetryAfter: d.RetryAfter, ResetAfter: d.ResetAfter,
	})
	for i := range d.States {
		out.States = append(out.States, newState(d.States[i]))
	}
	if d.States == nil {
		out.States = append(out.States, out.state)
	}
	if !d.At.IsZero() {
		at := d.At.UTC().Format(instantForm)
		out.At = &at
	}
	return out
}

// unlimited is the decision about a tenant whom nothing limits on a route.
func unlimited() decision {
	zero := int64(0)
	return decision{state: state{Allowed: true, RetryAfter: &zero, RetryAfterMS: &zero}, Source: "unlimited", States: []state{}}
}

func newState(s headgate.State) state {
	limit, reset := s.Limit.String(), ceil(s.ResetAfter, time.Millisecond)
	out := state{Name: s.Limit.Name, Limit: &limit, Allowed: s.Allowed, Remaining: &s.Remaining, ResetAfterMS: &reset}
	if out.Never = s.RetryAfter == headgate.Never; !out.Never {
		whole, ms := ceil(s.RetryAfter, time.Second), ceil(s.RetryAfter, time.Millisecond)
		out.RetryAfter, out.RetryAfterMS = &whole, &ms
	}
	return out
}

// ceil returns d in units, rounded up: who waits for so long does not come too early.
func ceil(d, unit time.Duration) int64 {
	n := int64(d / unit)
	if d%unit > 0 {
		n++
	}
	return n
}

func writeJSON(w http.ResponseWriter, r *http.Request, v any) {
	write(w, r, http.StatusOK, "application/json", v)
}

func writeProblem(w http.ResponseWriter, r *http.Request, p problem) {
	if p.Type == "" {
		p.Type = "about:blank"
	}
	if p.Title == "" {
		p.Title = http.StatusText(p.Status)
	}
	write(w, r, p.Status, "application/problem+json", p)
}

// write answers with v, which has a JSON form, and which no cache keeps.
func write(w http.ResponseWriter, r *http.Request, status int, kind string, v any) {
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		status = http.StatusInternalServerError
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body.Bytes()) // the caller may be gone; nobody else is to be told
	}
}
