package lease

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/headgate/headgate"
)

// A parcel is what is left of a block, on its way back to the store.
type parcel struct {
	key   string
	limit headgate.Limit
	block block
}

// pack moves what is left of the account's blocks to list. Blocks of which something is set aside stay with that.
func (a *account) pack(list []parcel) []parcel {
	for i := range a.blocks {
		if b := &a.blocks[i]; b.left > 0 {
			list = append(list, parcel{a.key.owner, a.limit, *b})
			b.taken -= b.left
			b.left = 0
		}
	}
	a.blocks = slices.DeleteFunc(a.blocks, block.empty)
	return list
}

// couriers is how many parcels are under way at once.
const couriers = 16

// giveBack gives the parcels back, each with one call. What cannot be given back, or only perhaps was, is stranded. After a call that
// failed, and after the end of ctx, no further ones are made.
func (s *Store) giveBack(ctx context.Context, list []parcel) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	next := make(chan parcel)
	var wg sync.WaitGroup
	for range min(couriers, len(list)) {
		wg.Go(func() {
			for p := range next {
				if !s.deliver(ctx, p) {
					stop()
				}
			}
		})
	}
	for _, p := range list {
		next <- p
	}
	close(next)
	wg.Wait()
}

// deliver gives one parcel back. It returns false if the store did not answer.
func (s *Store) deliver(ctx context.Context, p parcel) bool {
	now := time.Now()
	n := int64(0)
	if p.block.alive(now) && ctx.Err() == nil {
		n = p.block.returnable(p.limit, now.Add(s.cfg.Timeout))
	}
	sh := s.table.shard(key{owner: p.key})
	if n == 0 {
		sh.settle(func(c *Stats) { c.Stranded += p.block.left })
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	err := s.inner.Refund(headgate.WithTakenAt(ctx, p.block.at), headgate.Charge{Key: p.key, Cost: n, Limit: p.limit})
	if err != nil {
		n = 0
	}
	sh.settle(func(c *Stats) { c.Returns++; c.GivenBack += n; c.Stranded += p.block.left - n })
	return err == nil
}

// settle changes the counts of a shard that is not locked.
func (s *shard) settle(change func(*Stats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.counts)
}
