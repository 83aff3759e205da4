package httplimit

import (
	"context"
	"slices"

	"github.com/headgate/headgate"
)

// FromContext returns the decision that let a request through, from the context of the request that the handler got; false if no
// middleware of this package did. Where several did, it is that of the innermost. An OnDenied handler finds its decision too.
func FromContext(ctx context.Context) (headgate.Decision, bool) {
	if o := outcomeFrom(ctx); o != nil {
		return o.decision, true
	}
	return headgate.Decision{}, false
}

type outcomeKey struct{}

// An outcome is a decision and what the response says of it. It is the context of the request that goes on: one allocation for both.
type outcome struct {
	context.Context
	decision headgate.Decision
	policies *policies      // what was asked of the request, here and by the middleware around; empty if nobody could decide
	binding  headgate.State // the one of them that the fields describe
	values   [10]string     // backs the fields of the response
}

// Value returns the outcome itself for outcomeKey.
func (o *outcome) Value(key any) any {
	if key == (outcomeKey{}) {
		return o
	}
	return o.Context.Value(key)
}

func outcomeFrom(ctx context.Context) *outcome {
	o, _ := ctx.Value(outcomeKey{}).(*outcome)
	return o
}

// newOutcome returns the outcome of d inside of what ctx carries.
func (k *descriptions) newOutcome(ctx context.Context, d headgate.Decision) *outcome {
	o := &outcome{Context: ctx, decision: d, policies: &k.none}
	outer := outcomeFrom(ctx)
	nested := outer != nil && len(outer.policies.limits) > 0
	if !decided(d) {
		if nested {
			o.policies, o.binding = outer.policies, outer.binding
		}
		return o
	}
	o.binding = headgate.State{Limit: d.Limit, Allowed: d.Allowed, Remaining: d.Remaining, RetryAfter: d.RetryAfter, ResetAfter: d.ResetAfter}
	if !nested {
		o.policies = k.of(&d)
		return o
	}
	o.policies = describe(appendLimits(slices.Clip(outer.policies.limits), &d))
	if d.Allowed && outer.binding.Remaining < d.Remaining {
		o.binding = outer.binding
	}
	return o
}

// decided says whether somebody looked at the limits: a decision of nobody knows nothing of what is left.
func decided(d headgate.Decision) bool {
	return d.Source != headgate.FromOpen && d.Source != headgate.FromClosed
}
