package lease

import (
	"context"
	"slices"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/algorithm"
)

// A request is several charges while they are decided, some here and some by the store.
type request struct {
	charges []headgate.Charge
	states  []headgate.State
	left    []int     // places of the charges that are left to the store
	asked   bool      // the store was
	at      time.Time // its instant, or that of the decision here
}

// without returns the places of the charges that are in none of shares.
func (r *request) without(shares []share) []int {
	var places []int
	for i := range r.charges {
		if !slices.ContainsFunc(shares, func(p share) bool { return slices.Contains(p.places, i) }) {
			places = append(places, i)
		}
	}
	return places
}

func (r *request) pick(places []int) []headgate.Charge {
	list := make([]headgate.Charge, len(places))
	for i, place := range places {
		list[i] = r.charges[place]
	}
	return list
}

// ask has the store decide the charges at places, and notes what it says of each. What is held of a counter besides is in Remaining. It
// returns whether they were made.
func (s *Store) ask(ctx context.Context, r *request, places []int) (bool, error) {
	list := r.pick(places)
	d, err := s.inner.Take(ctx, list[0], list[1:]...)
	if err != nil {
		return false, err
	}
	states := d.States
	if states == nil {
		states = []headgate.State{{Limit: d.Limit, Allowed: d.Allowed, Remaining: d.Remaining, RetryAfter: d.RetryAfter, ResetAfter: d.ResetAfter}}
	}
	for i, c := range list {
		st := states[i]
		if s.leases(c) {
			if held := s.learn(keyOf(c), c, st.Allowed, st.Remaining); st.Allowed {
				st.Remaining = min(c.Limit.Capacity(), algorithm.Add(st.Remaining, held))
			}
		}
		r.states[places[i]] = st
	}
	r.asked, r.at = true, d.At
	return d.Allowed, nil
}

// made notes the charges that were made here.
func (r *request) made(shares []share) {
	for i := range shares {
		p := &shares[i]
		for _, place := range p.places {
			r.states[place] = p.state
		}
		if !r.asked && p.at.After(r.at) {
			r.at = p.at
		}
	}
}

// denied notes the charges that had room here, and were not made.
func (r *request) denied(shares []share) {
	for i := range shares {
		shares[i].state.Remaining = min(shares[i].charge.Limit.Capacity(), algorithm.Add(shares[i].state.Remaining, shares[i].charge.Cost))
	}
	r.made(shares)
}

// refunded notes that the charges that the store had made were given back to it.
func (r *request) refunded() {
	for _, place := range r.left {
		c := r.charges[place]
		r.states[place].Remaining = min(c.Limit.Capacity(), algorithm.Add(r.states[place].Remaining, c.Cost))
	}
}

func (r *request) decision() headgate.Decision {
	d := headgate.Decide(r.at, r.states)
	if !r.asked {
		d.Source = headgate.FromLease
	}
	return d
}
