package lease

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
)

// A Store decides out of leases what it can, and asks the store that it stands before for the rest. Make one with [New] and close it. Safe
// for concurrent use.
//
// One block of a counter is taken at a time, and those who need it wait for it, in no order among them; whoever then finds too little goes
// to the store by itself, as do those whom no block would serve. A block that the store did not answer about is an error to those who
// waited for it, and is counted as stranded: it is never asked for again.
//
// A charge of cost 0 always asks the store. What it, and any grant, says of Remaining counts what this process holds: the tokens that
// a caller of this process can still get, and never more than the capacity. A decision out of a lease says of the store what was true when
// the block was taken; what others have taken or time has brought since is not known here. Its At is an instant of the store's
// clock between the grant of the block and now. A denial is what the store said of the request, and nothing else.
//
// Other processes' tokens are out of reach: a request may be denied while another process holds what it needs, for less than L.
type Store struct {
	inner   headgate.Store
	cfg     Config
	table   *table
	numbers atomic.Uint64 // of blocks
	closed  atomic.Bool
	refills sync.WaitGroup
	closing chan struct{}      // closed by Close: the sweeper begins nothing more
	stop    context.CancelFunc // ends what it has begun
	swept   chan struct{}      // closed when it has ended
}

var _ headgate.Guarded = (*Store)(nil)

// New returns a Store before inner, which it does not own. Errors match [headgate.ErrInvalidConfig]. A goroutine gives back what nobody
// asks for any more, until Close.
func New(inner headgate.Store, cfg Config) (*Store, error) {
	if inner == nil {
		return nil, fmt.Errorf("%w: no store to lease from", headgate.ErrInvalidConfig)
	}
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Store{inner: inner, cfg: cfg, table: newTable(cfg.MaxKeys), closing: make(chan struct{}), stop: stop, swept: make(chan struct{})}
	go s.sweep(ctx)
	return s, nil
}

// Guard implements [headgate.Guarded]: it returns the Guard of the store that it stands before.
func (s *Store) Guard() *headgate.Guard {
	if g, ok := s.inner.(headgate.Guarded); ok {
		return g.Guard()
	}
	return nil
}

// Close gives back what is held, as far as ctx allows, and ends what runs in the background. Afterwards, and while it runs, requests go to
// the store as they are. The error is that of ctx, if it ended before all was tried; a second Close does nothing.
func (s *Store) Close(ctx context.Context) error {
	if s.closed.Swap(true) {
		return nil
	}
	for i := range s.table.list { // whoever found the store open has begun its refill
		s.table.list[i].settle(func(*Stats) {})
	}
	close(s.closing)
	landed := make(chan struct{})
	go func() { <-s.swept; s.refills.Wait(); close(landed) }()
	select {
	case <-landed:
	case <-ctx.Done():
	}
	s.stop()
	<-s.swept
	s.giveBack(ctx, s.collect(time.Now(), 0))
	return ctx.Err()
}

// Take implements [headgate.Store].
func (s *Store) Take(ctx context.Context, first headgate.Charge, more ...headgate.Charge) (headgate.Decision, error) {
	if err := headgate.CheckCharges(first, more); err != nil {
		return headgate.Decision{}, err
	}
	if len(more) > 0 {
		return s.takeAll(ctx, first, more)
	}
	if !s.leases(first) {
		return s.inner.Take(ctx, first)
	}
	return s.takeOne(ctx, first)
}

// leases says whether a charge may be decided by leases.
func (s *Store) leases(c headgate.Charge) bool {
	return Supports(c.Limit.Algorithm) && !s.closed.Load() && (s.cfg.Leases == nil || s.cfg.Leases(c))
}

// Refund implements [headgate.Store]. Tokens of a lease that lasts go back to it, and the others to the store.
func (s *Store) Refund(ctx context.Context, first headgate.Charge, more ...headgate.Charge) error {
	if err := headgate.CheckCharges(first, more); err != nil {
		return err
	}
	if len(more) == 0 {
		if first.Cost -= s.refund(ctx, first); first.Cost == 0 {
			return nil
		}
		return s.inner.Refund(ctx, first)
	}
	rest := make([]headgate.Charge, 0, 1+len(more))
	for _, c := range append([]headgate.Charge{first}, more...) {
		if c.Cost -= s.refund(ctx, c); c.Cost > 0 {
			rest = append(rest, c)
		}
	}
	if len(rest) == 0 {
		return nil
	}
	return s.inner.Refund(ctx, rest[0], rest[1:]...)
}

// refund puts back what it can of c, and returns how many tokens that is.
func (s *Store) refund(ctx context.Context, c headgate.Charge) int64 {
	if c.Cost == 0 || s.closed.Load() {
		return 0
	}
	takenAt, _ := headgate.TakenAt(ctx)
	k, now := keyOf(c), time.Now()
	sh := s.table.shard(k)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	a := sh.find(k, now)
	if a == nil || a.limit != c.Limit {
		return 0
	}
	n := a.refund(c.Cost, takenAt, now)
	sh.counts.Refunded += n
	return n
}

// Reset implements [headgate.Store]. What is held is forgotten, not given back, and so is what is on its way. Leases of other processes
// last until their end.
func (s *Store) Reset(ctx context.Context, first headgate.Charge, more ...headgate.Charge) error {
	if err := headgate.CheckCharges(first, more); err != nil {
		return err
	}
	for _, c := range append([]headgate.Charge{first}, more...) {
		defer s.freeze(c)()
	}
	return s.inner.Reset(ctx, first, more...)
}

// freeze drops what is held for c, on its way back to the store included, and keeps anything from being leased until the returned function
// is called: a token that is leased while the store forgets could be spent beside all that it then grants.
func (s *Store) freeze(c headgate.Charge) (thaw func()) {
	if !Supports(c.Limit.Algorithm) {
		return func() {}
	}
	k := keyOf(c)
	sh := s.table.shard(k)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.recall(k)
	a := sh.accounts[k]
	switch {
	case a == nil && !s.leases(c):
		return func() {}
	case a == nil: // also where there is no room: it is not for long
		a = &account{key: k, limit: c.Limit}
		sh.accounts[k] = a
	}
	sh.counts.Stranded += a.drop()
	a.frozen++
	return func() { sh.settle(func(*Stats) { a.frozen-- }) }
}
