package httplimit

import (
	"errors"
	"net/http"
	"strconv"
)

var (
	// ErrUnlimited is returned by a Key, Cost or Charges function for a request that nobody pays for: it passes, uncounted.
	ErrUnlimited = errors.New("httplimit: request is not limited")
	// ErrNoIdentity is a request that does not say who it comes from.
	ErrNoIdentity = errors.New("httplimit: request has no identity")
)

// StatusClientClosedRequest is the status that [WriteError] gives a request whose caller went away before it was decided. Nobody
// receives it; it tells logs and metrics that this was neither a denial nor a failure. It is nginx's number, not a registered one.
const StatusClientClosedRequest = 499

// A StatusError is returned by a Key, Cost or Charges function to choose the answer: 401 for who is not known, 403 for who may not.
type StatusError struct {
	// Status is the HTTP status, 400 to 599. 0 = 400; anything else = 500.
	Status int
	// Detail is told to the caller. "" = a general sentence about the status.
	Detail string
	// Challenge is the value of WWW-Authenticate, which HTTP asks of every 401. "" = no such field.
	Challenge string
	// Err is the cause. It is not told to the caller. May be nil.
	Err error
}

// Error returns "httplimit: STATUS: cause".
func (e *StatusError) Error() string {
	s := "httplimit: status " + strconv.Itoa(e.status())
	switch {
	case e.Err != nil:
		return s + ": " + e.Err.Error()
	case e.Detail != "":
		return s + ": " + e.Detail
	}
	return s
}

// Unwrap returns the cause.
func (e *StatusError) Unwrap() error { return e.Err }

func (e *StatusError) status() int {
	switch {
	case e.Status == 0:
		return http.StatusBadRequest
	case e.Status < 400 || e.Status > 599:
		return http.StatusInternalServerError
	}
	return e.Status
}
