package lease

import (
	"context"
	"errors"
	"time"

	"github.com/headgate/headgate"
)

// A refill is a block on its way from the store. It has a goroutine of its own, so that a caller that goes away leaves nothing behind: the
// block is there for the others.
type refill struct {
	done chan struct{} // closed once the block is in its account, or is known not to come
	err  error         // why the store did not answer; read it after done
}

// start asks for a block: c with the cost of all of it. The shard of a is locked.
func (s *Store) start(ctx context.Context, sh *shard, a *account, c headgate.Charge) *refill {
	r := &refill{done: make(chan struct{})}
	a.refill = r
	sh.counts.Blocks++
	epoch := a.epoch
	s.refills.Go(func() {
		defer close(r.done)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Timeout)
		defer cancel()
		asked := time.Now()
		d, err := s.inner.Take(ctx, c)
		answered := time.Now()
		sh.mu.Lock()
		defer sh.mu.Unlock()
		a.refill, r.err = nil, err
		switch stale := a.epoch != epoch; {
		case err != nil:
			s.lost(sh, a, c.Cost, err)
		case !d.Allowed && !stale:
			a.demand.learn(false, d.Remaining)
		case d.Allowed && stale:
			sh.counts.Leased += c.Cost
			sh.counts.Stranded += c.Cost
		case d.Allowed:
			sh.counts.Leased += c.Cost
			a.demand.learn(true, d.Remaining)
			a.add(newBlock(s.numbers.Add(1), c.Limit, c.Cost, d, asked, answered, s.cfg.Lifetime))
		}
	})
	return r
}

// lost notes a block that may have been taken: nobody will know. The next request is decided by the store.
func (s *Store) lost(sh *shard, a *account, n int64, err error) {
	a.demand.learn(false, 0)
	if errors.Is(err, headgate.ErrBreakerOpen) || !errors.Is(err, headgate.ErrStore) { // it was not asked
		return
	}
	sh.counts.Leased += n
	sh.counts.Stranded += n
}
