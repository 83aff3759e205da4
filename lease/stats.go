package lease

import "time"

// Stats says what a [Store] has done since it was made. Tokens that are neither held nor on their way back to the store have come to
// one of four ends: Leased + Refunded = Spent + GivenBack + Stranded + Held.
type Stats struct {
	Keys      int   // counters for which tokens are held or demand is measured
	Held      int64 // tokens that can be spent now
	Decisions int64 // requests that were decided without asking the store
	Blocks    int64 // calls that asked the store for a block
	Returns   int64 // calls that gave tokens back to it
	Leased    int64 // tokens that the store granted in blocks, or may have granted: the outcome of a call may be unknown
	Spent     int64 // leased tokens that requests were charged
	Refunded  int64 // spent tokens that callers gave back while their lease lasted, to be spent again
	GivenBack int64 // leased tokens that the store took back
	Stranded  int64 // leased tokens that were neither spent nor given back: their time was over, or the limit's numbers changed, or a reset
}

// Saved returns how many calls of the store there were fewer than without leases; it is negative where leases did not pay.
func (s Stats) Saved() int64 { return s.Decisions - s.Blocks - s.Returns }

// Stats returns the counts so far. It locks a part of the accounts after the other, so that requests under way may be in some of the counts
// and not in others.
func (s *Store) Stats() Stats {
	var sum Stats
	now := time.Now()
	for i := range s.table.list {
		s.table.list[i].report(&sum, now)
	}
	return sum
}

// report adds what the shard has counted and holds.
func (s *shard) report(sum *Stats, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum.Keys += len(s.accounts)
	for _, a := range s.accounts {
		s.counts.Stranded += a.expire(now)
		sum.Held += a.held(now)
	}
	c := &s.counts
	sum.Decisions += c.Decisions
	sum.Blocks += c.Blocks
	sum.Returns += c.Returns
	sum.Leased += c.Leased
	sum.Spent += c.Spent
	sum.Refunded += c.Refunded
	sum.GivenBack += c.GivenBack
	sum.Stranded += c.Stranded
}
