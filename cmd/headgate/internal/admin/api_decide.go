package admin

import (
	"context"
	"errors"
	"net/http"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

// take asks for tokens. It is no request to be sent again where the answer was lost: the tokens may have been taken.
func (a *API) take(w http.ResponseWriter, r *http.Request) { a.decide(w, r, takeForm) }

// peek looks and changes nothing.
func (a *API) peek(w http.ResponseWriter, r *http.Request) { a.decide(w, r, peekForm) }

func (a *API) decide(w http.ResponseWriter, r *http.Request, f form) {
	ask, ok := a.read(w, r, f)
	if !ok {
		return
	}
	if len(ask.charges) == 0 {
		writeJSON(w, r, unlimited())
		return
	}
	d, err := a.gate.Limiter(ask.mode).Take(r.Context(), ask.charges[0], ask.charges[1:]...)
	if err != nil {
		writeStoreProblem(w, r, err)
		return
	}
	writeJSON(w, r, newDecision(d))
}

// refund gives back what a take took.
func (a *API) refund(w http.ResponseWriter, r *http.Request) {
	a.change(w, r, refundForm, a.store.Refund)
}

// reset forgets what keys have used.
func (a *API) reset(w http.ResponseWriter, r *http.Request) { a.change(w, r, resetForm, a.store.Reset) }

func (a *API) change(w http.ResponseWriter, r *http.Request, f form, do func(context.Context, headgate.Charge, ...headgate.Charge) error) {
	ask, ok := a.read(w, r, f)
	if !ok {
		return
	}
	if len(ask.charges) > 0 {
		if err := do(headgate.WithTakenAt(r.Context(), ask.takenAt), ask.charges[0], ask.charges[1:]...); err != nil {
			writeStoreProblem(w, r, err)
			return
		}
	}
	writeJSON(w, r, done{Done: true})
}

// writeStoreProblem answers a request about which the store said nothing.
func writeStoreProblem(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		w.WriteHeader(httplimit.StatusClientClosedRequest) // nobody is there to read it
		return
	}
	w.Header().Set("Retry-After", "1")
	writeProblem(w, r, problem{
		Type: typeCapacity, Title: "Request cannot be satisfied as capacity is temporarily reduced", Status: http.StatusServiceUnavailable,
		Detail: "The store did not answer; whether it did what was asked is not known.",
	})
}
