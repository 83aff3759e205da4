package headgate_test

import (
	"context"
	"errors"
	"testing"

	"github.com/headgate/headgate"
)

func TestCause(t *testing.T) {
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	failed := func(why error) error { return &headgate.StoreError{Op: "take", Err: why} }
	for _, test := range []struct {
		ctx  context.Context
		err  error
		want headgate.Cause
	}{
		{t.Context(), nil, headgate.CauseNone},
		{canceled, nil, headgate.CauseNone},
		{t.Context(), headgate.ErrInvalidCharge, headgate.CauseInvalid},
		{canceled, headgate.ErrInvalidLimit, headgate.CauseInvalid},
		{canceled, failed(context.Canceled), headgate.CauseAbandoned},
		{canceled, failed(headgate.ErrBreakerOpen), headgate.CauseAbandoned},
		{t.Context(), failed(context.DeadlineExceeded), headgate.CauseTimeout},
		{t.Context(), failed(headgate.ErrBreakerOpen), headgate.CauseBreaker},
		{t.Context(), failed(errors.New("connection refused")), headgate.CauseFailed},
	} {
		o := headgate.Observation{Err: test.err}
		if got := o.Cause(test.ctx); got != test.want {
			t.Errorf("%v: got %v, want %v", test.err, got, test.want)
		}
	}
}

func TestNamesOfCauses(t *testing.T) {
	seen := map[string]bool{}
	for c := range headgate.Cause(headgate.Causes) {
		seen[c.String()] = true
	}
	if len(seen) != headgate.Causes || seen[""] || headgate.Cause(headgate.Causes).String() != "cause(6)" {
		t.Errorf("got %v and %v", seen, headgate.Cause(headgate.Causes))
	}
}
