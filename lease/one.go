package lease

import (
	"context"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/algorithm"
)

// takeOne decides a charge that may be leased.
func (s *Store) takeOne(ctx context.Context, c headgate.Charge) (headgate.Decision, error) {
	k := keyOf(c)
	if c.Cost > 0 {
		d, ok, err := s.spend(ctx, k, c)
		if ok || err != nil {
			return d, err
		}
	}
	d, held, err := s.exact(ctx, k, c)
	if err != nil || d.Allowed || held == 0 || algorithm.Add(d.Remaining, held) < c.Cost {
		return d, err
	}
	return s.combine(ctx, k, c, d)
}

// combine decides c, for which neither the store, by its denial, nor what is held has room, and both together may.
func (s *Store) combine(ctx context.Context, k key, c headgate.Charge, denial headgate.Decision) (headgate.Decision, error) {
	here, there := c, c
	here.Cost = s.heldOf(k, c.Cost)
	if there.Cost -= here.Cost; here.Cost == 0 {
		return denial, nil
	}
	p := share{key: k, charge: here, places: []int{0}}
	if err := s.setAside(ctx, &p); err != nil || p.aside == nil { // it is gone by now, and the store's denial stands
		return denial, nil
	}
	r := request{charges: []headgate.Charge{here, there}, states: make([]headgate.State, 2), left: []int{1}}
	if there.Cost == 0 {
		r = request{charges: []headgate.Charge{here}, states: make([]headgate.State, 1)}
	}
	d, err := s.conclude(ctx, &r, []share{p})
	if d.States = nil; err == nil && !d.Allowed {
		return denial, nil
	}
	return d, err
}

// heldOf returns how much of what is held of k up to most tokens can use.
func (s *Store) heldOf(k key, most int64) int64 {
	sh := s.table.shard(k)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := time.Now()
	if a := sh.find(k, now); a != nil {
		return min(most, a.held(now))
	}
	return 0
}

// spend decides c out of what is held. It returns false if the store has to decide.
func (s *Store) spend(ctx context.Context, k key, c headgate.Charge) (d headgate.Decision, ok bool, err error) {
	ok, err = s.reach(ctx, k, c, func(sh *shard, a *account, now time.Time) {
		a.spend(c.Cost, now, nil)
		sh.counts.Spent += c.Cost
		sh.counts.Decisions++
		d = decision(a.state(c.Limit, now), a.youngest().instant(now))
	})
	return d, ok, err
}

// reach calls use, under the lock, once what is held is enough for c. If it is too little and a block is worth its call, it waits for one, once.
// It returns false if use was not called, and an error if the store did not answer about the block or ctx ended.
func (s *Store) reach(ctx context.Context, k key, c headgate.Charge, use func(*shard, *account, time.Time)) (bool, error) {
	sh := s.table.shard(k)
	var r *refill
	for waited := false; ; waited = true {
		sh.mu.Lock()
		now := time.Now() // inside the lock: after the grant of whatever is held
		a := sh.open(k, c.Limit, now)
		if a == nil || a.frozen > 0 {
			sh.mu.Unlock()
			return false, nil
		}
		if !waited {
			a.demand.ask(now, c.Cost)
		}
		if a.held(now) >= c.Cost {
			use(sh, a, now)
			sh.mu.Unlock()
			return true, nil
		}
		if !waited {
			r = s.need(ctx, sh, a, c, now)
		}
		sh.mu.Unlock()
		if waited || r == nil {
			return false, nil
		}
		if err := r.wait(ctx); err != nil {
			return false, err
		}
	}
}

// need returns the refill that is under way, or one that it starts; nil = a block is not worth its call. The shard is locked.
func (s *Store) need(ctx context.Context, sh *shard, a *account, c headgate.Charge, now time.Time) *refill {
	if a.refill != nil || s.closed.Load() {
		return a.refill
	}
	n := a.demand.size(now, c.Cost, s.cfg.Lifetime)
	if n <= c.Cost || a.full() {
		return nil
	}
	c.Cost = n
	return s.start(ctx, sh, a, c)
}

// wait waits for the block, or for the end of ctx.
func (r *refill) wait(ctx context.Context) error {
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return &headgate.StoreError{Op: "take", Err: context.Cause(ctx)}
	}
}

// exact has the store decide, and returns what is held here besides. Of a grant and a look, that is in Remaining.
func (s *Store) exact(ctx context.Context, k key, c headgate.Charge) (headgate.Decision, int64, error) {
	d, err := s.inner.Take(ctx, c)
	if err != nil {
		return d, 0, err
	}
	held := s.learn(k, c, d.Allowed, d.Remaining)
	if d.Allowed {
		d.Remaining = min(c.Limit.Capacity(), algorithm.Add(d.Remaining, held))
	}
	return d, held, nil
}

// learn notes what the store said to c, and returns what is held besides.
func (s *Store) learn(k key, c headgate.Charge, allowed bool, remaining int64) int64 {
	now := time.Now()
	sh := s.table.shard(k)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	a := sh.find(k, now)
	if a == nil || a.limit != c.Limit {
		return 0
	}
	a.demand.learn(allowed, remaining)
	return a.held(now)
}

// decision is that of a request decided here.
func decision(st headgate.State, at time.Time) headgate.Decision {
	return headgate.Decision{
		Allowed: st.Allowed, Limit: st.Limit, Remaining: st.Remaining, ResetAfter: st.ResetAfter, At: at, Source: headgate.FromLease,
	}
}
