package denial

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate/headgate"
)

// A Store answers in process those who were denied by the store that it is made around, and asks that one about everybody else. It keeps
// no goroutine and needs no Close. Safe for concurrent use, if the other is.
type Store struct {
	store        headgate.Store
	maxStaleness time.Duration
	table        table
	now          func() time.Duration // since New, monotonic
}

var _ headgate.Guarded = (*Store)(nil)

// New returns a Store around store. Errors match [headgate.ErrInvalidConfig].
func New(store headgate.Store, cfg Config) (*Store, error) {
	if store == nil {
		return nil, fmt.Errorf("%w: no store to ask", headgate.ErrInvalidConfig)
	}
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	start := time.Now()
	return &Store{
		store: store, maxStaleness: cfg.MaxStaleness, table: newTable(cfg.MaxKeys),
		now: func() time.Duration { return time.Since(start) },
	}, nil
}

// Guard implements [headgate.Guarded]: it returns the Guard that the store is asked through, nil if there is none.
func (s *Store) Guard() *headgate.Guard {
	if inner, ok := s.store.(headgate.Guarded); ok {
		return inner.Guard()
	}
	return nil
}

// Saved returns how many decisions were made here: calls that the store was spared.
func (s *Store) Saved() int64 {
	var n int64
	for i := range s.table.stripes {
		n += s.table.stripes[i].saved.Load()
	}
	return n
}

// Evicted returns how many denials were forgotten early, to make room for others. A number that grows fast says that MaxKeys is too
// small for as many as are denied at once.
func (s *Store) Evicted() int64 {
	var n int64
	for i := range s.table.stripes {
		n += s.table.stripes[i].evicted.Load()
	}
	return n
}

// Take implements [headgate.Store]. What it answers itself it answers whether or not ctx has ended.
func (s *Store) Take(ctx context.Context, first headgate.Charge, more ...headgate.Charge) (headgate.Decision, error) {
	if len(more) > 0 {
		return s.takeAll(ctx, first, more)
	}
	hash := s.table.hash(&first)
	stripe := s.table.stripe(hash)
	known, now := stripe.find(hash, &first), s.now()
	if known != nil {
		if known.answers(&first, now) {
			stripe.saved.Add(1)
			return known.decision(&first, now), nil
		}
		if known.limit != first.Limit {
			stripe.changed(hash, &first)
		}
	}
	version := stripe.version.Load() // before the store is asked: what changes from here on may come after its decision
	d, err := s.store.Take(ctx, first)
	switch {
	case err != nil || d.Allowed && first.Cost > 0 || d.Remaining > 0 && stripe.find(hash, &first) != nil:
		stripe.changed(hash, &first)
	default:
		if e := remember(hash, &first, &d, now, s.maxStaleness); e != nil {
			stripe.put(e, version)
		}
	}
	return d, err
}

// takeAll asks the store, and forgets what the answer shows to be over. A store that has to take the charges one by one has given back those
// that had room when another had none, so they have changed too.
func (s *Store) takeAll(ctx context.Context, first headgate.Charge, more []headgate.Charge) (headgate.Decision, error) {
	d, err := s.store.Take(ctx, first, more...)
	known := err == nil && len(d.States) == 1+len(more)
	for i := range 1 + len(more) {
		c := &first
		if i > 0 {
			c = &more[i-1]
		}
		hash := s.table.hash(c)
		stripe := s.table.stripe(hash)
		e := stripe.find(hash, c)
		charged := c.Cost > 0 && (!known || d.States[i].Allowed)
		contradicted := e != nil && (!known || d.States[i].Remaining > 0 || e.limit != c.Limit)
		if charged || contradicted {
			stripe.changed(hash, c)
		}
	}
	return d, err
}

// Refund implements [headgate.Store].
func (s *Store) Refund(ctx context.Context, first headgate.Charge, more ...headgate.Charge) error {
	err := s.store.Refund(ctx, first, more...)
	s.changed(first, more)
	return err
}

// Reset implements [headgate.Store].
func (s *Store) Reset(ctx context.Context, first headgate.Charge, more ...headgate.Charge) error {
	err := s.store.Reset(ctx, first, more...)
	s.changed(first, more)
	return err
}

// changed forgets the counters of the charges. It is called once the change is made, so that a denial whose request is sent from then on
// knows of it, and one that was sent before is not remembered.
func (s *Store) changed(first headgate.Charge, more []headgate.Charge) {
	hash := s.table.hash(&first)
	s.table.stripe(hash).changed(hash, &first)
	for i := range more {
		hash := s.table.hash(&more[i])
		s.table.stripe(hash).changed(hash, &more[i])
	}
}
