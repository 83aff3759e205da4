package gateway

import (
	"context"

	"github.com/headgate/headgate/cmd/headgate/internal/meter"
	"github.com/headgate/headgate/cmd/headgate/internal/policy"
)

// A visit is what is known of a request once it is known who calls what. It is the context of the request that goes on: one allocation
// for both.
type visit struct {
	context.Context
	*state
	route    *policy.Route
	tenant   string
	plan     string  // of a tenant that the configuration does not list
	client   *client // nil where only a permit is asked for
	readable bool    // whether the page that sent the request may read the response
	meter    *meter.Meter
}

type visitKey struct{}

// Value returns the visit itself for visitKey.
func (v *visit) Value(key any) any {
	if key == (visitKey{}) {
		return v
	}
	return v.Context.Value(key)
}

// visitOf returns the visit of a request with this context; false = it did not come in through the gateway.
func visitOf(ctx context.Context) (*visit, bool) {
	v, ok := ctx.Value(visitKey{}).(*visit)
	return v, ok
}
