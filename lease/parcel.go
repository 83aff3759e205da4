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
	key    key
	limit  headgate.Limit
	block  block
	resets uint64 // of the shard, when it was packed
}

// pack moves what is left of the account's blocks to list. Blocks of which something is set aside stay with that.
func (a *account) pack(list []parcel, resets uint64) []parcel {
	for i := range a.blocks {
		if b := &a.blocks[i]; b.left > 0 {
			list = append(list, parcel{a.key, a.limit, *b, resets})
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
	sh := s.table.shard(p.key)
	if n == 0 || !sh.dispatch(p) {
		sh.settle(func(c *Stats) { c.Stranded += p.block.left })
		return true
	}
	defer sh.landed(p)
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	err := s.inner.Refund(headgate.WithTakenAt(ctx, p.block.at), headgate.Charge{Key: p.key.owner, Cost: n, Limit: p.limit})
	if err != nil {
		n = 0
	}
	sh.settle(func(c *Stats) { c.Returns++; c.GivenBack += n; c.Stranded += p.block.left - n })
	return err == nil
}

// dispatch notes that a parcel is under way. It returns false if something was reset since it was packed: what it holds may have been forgotten.
func (s *shard) dispatch(p parcel) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.resets != s.resets {
		return false
	}
	s.away[p.key]++
	return true
}

// landed notes that a parcel is no longer under way.
func (s *shard) landed(p parcel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away[p.key]--; s.away[p.key] == 0 {
		delete(s.away, p.key)
	}
	s.arrived.Broadcast()
}

// recall sees to it that no parcel of k reaches the store any more, and waits for those that are under way, as long as a call may take. The
// shard is locked.
func (s *shard) recall(k key) {
	s.resets++
	for s.away[k] > 0 {
		s.arrived.Wait()
	}
}

// settle changes the counts of a shard that is not locked.
func (s *shard) settle(change func(*Stats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.counts)
}
