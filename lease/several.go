package lease

import (
	"context"
	"slices"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/algorithm"
)

// A share is what a request of several charges asks of one counter that may be leased.
type share struct {
	key    key
	charge headgate.Charge // with the cost of all charges to the counter
	places []int           // of these among the request's charges
	aside  []portion       // of the leases; none = the store decides
	state  headgate.State  // of the charge, once it is made
	at     time.Time
}

// A portion is tokens of one block that are set aside.
type portion struct {
	number uint64
	n      int64
}

// takeAll decides several charges: those to counters of which enough is held are set aside here, then the store decides the others in
// one step, and by its answer what is set aside is spent or put back.
func (s *Store) takeAll(ctx context.Context, first headgate.Charge, more []headgate.Charge) (headgate.Decision, error) {
	charges := append([]headgate.Charge{first}, more...)
	shares := s.sharesOf(charges)
	for i := range shares {
		if err := s.setAside(ctx, &shares[i]); err != nil {
			s.putBack(shares)
			return headgate.Decision{}, err
		}
	}
	shares = slices.DeleteFunc(shares, func(p share) bool { return p.aside == nil })
	r := request{charges: charges, states: make([]headgate.State, len(charges))}
	r.left = r.without(shares)
	return s.conclude(ctx, &r, shares)
}

// conclude has the store decide what is left to it, and spends what is set aside or puts it back.
func (s *Store) conclude(ctx context.Context, r *request, shares []share) (headgate.Decision, error) {
	if len(r.left) > 0 {
		allowed, err := s.ask(ctx, r, r.left)
		if err != nil {
			s.putBack(shares)
			return headgate.Decision{}, err
		}
		if !allowed {
			s.putBack(shares)
			r.denied(shares)
			return r.decision(), nil
		}
	}
	if s.settle(shares) {
		r.made(shares)
		if len(r.left) == 0 {
			s.table.shard(shares[0].key).settle(func(c *Stats) { c.Decisions++ })
		}
		return r.decision(), nil
	}
	s.putBack(shares)
	return s.takeLate(ctx, r, shares)
}

// takeLate decides a request whose leases ended while the store was asked for the rest: it asks for them too, and gives the rest back if they
// are denied.
func (s *Store) takeLate(ctx context.Context, r *request, shares []share) (headgate.Decision, error) {
	var places []int
	for i := range shares {
		places = append(places, shares[i].places...)
	}
	granted := r.at
	allowed, err := s.ask(ctx, r, places)
	if !allowed && len(r.left) > 0 {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Timeout)
		defer cancel()
		list := r.pick(r.left)
		if s.inner.Refund(headgate.WithTakenAt(ctx, granted), list[0], list[1:]...) == nil {
			r.refunded()
		}
	}
	if err != nil {
		return headgate.Decision{}, err
	}
	return r.decision(), nil
}

// sharesOf brings together the charges that may be leased, by counter.
func (s *Store) sharesOf(charges []headgate.Charge) []share {
	var list []share
	for i, c := range charges {
		if !s.leases(c) {
			continue
		}
		k := keyOf(c)
		j := slices.IndexFunc(list, func(p share) bool { return p.key == k })
		if j < 0 {
			list = append(list, share{key: k, charge: c, places: []int{i}})
			continue
		}
		list[j].charge.Cost = algorithm.Add(list[j].charge.Cost, c.Cost)
		list[j].places = append(list[j].places, i)
	}
	return list
}

// setAside sets the share's tokens aside, if so many are held or a block brings them.
func (s *Store) setAside(ctx context.Context, p *share) error {
	if p.charge.Cost == 0 {
		return nil
	}
	_, err := s.reach(ctx, p.key, p.charge, func(_ *shard, a *account, now time.Time) {
		a.spend(p.charge.Cost, now, func(number uint64, n int64) { p.aside = append(p.aside, portion{number, n}) })
		p.state, p.at = a.state(p.charge.Limit, now), a.youngest().instant(now)
	})
	return err
}

// settle spends all that is set aside, or nothing if a lease has ended meanwhile.
func (s *Store) settle(shares []share) bool {
	now := time.Now()
	for i := range shares {
		if !s.lasts(&shares[i], now) {
			return false
		}
	}
	for i := range shares {
		s.each(&shares[i], func(sh *shard, b *block, n int64) {
			sh.counts.Spent += n
			if b != nil {
				b.aside -= n
			}
		})
	}
	return true
}

func (s *Store) lasts(p *share, now time.Time) bool {
	all := true
	s.each(p, func(_ *shard, b *block, _ int64) { all = all && b != nil && b.alive(now) })
	return all
}

// putBack puts what is set aside back into its blocks.
func (s *Store) putBack(shares []share) {
	for i := range shares {
		s.each(&shares[i], func(sh *shard, b *block, n int64) {
			if b == nil {
				sh.counts.Stranded += n
				return
			}
			b.aside -= n
			b.left += n
		})
	}
}

// each calls do for each portion of p, under the lock, with its block; nil = that was dropped.
func (s *Store) each(p *share, do func(sh *shard, b *block, n int64)) {
	sh := s.table.shard(p.key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	a := sh.accounts[p.key]
	for _, part := range p.aside {
		var b *block
		if a != nil {
			b = a.block(part.number)
		}
		do(sh, b, part.n)
	}
}
