package redisstore

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"
)

// record sees to it, once and whenever a class of a longer life is first used, that the number of shards is on record and is ours.
// The record outlives whatever state is written.
func (s *Store) record(ctx context.Context, b *bill) error {
	class := int64(b.class())
	if s.checked.Load() > class {
		return nil
	}
	if err := s.checkLayout(ctx, int(class)); err != nil {
		return err
	}
	for known := s.checked.Load(); known <= class && !s.checked.CompareAndSwap(known, class+1); {
		known = s.checked.Load()
	}
	return nil
}

func (s *Store) checkLayout(ctx context.Context, class int) error {
	shards := len(s.layout.tags)
	v, err := s.eval(ctx, s.layoutScript, []string{s.layout.record()}, []any{shards, lifetime(class).Milliseconds()})
	if err != nil {
		return err
	}
	if recorded, _ := v.(string); recorded != strconv.Itoa(shards) {
		return layoutError(s.layout.prefix, recorded, shards)
	}
	return nil
}

// sweepIfDue starts a sweep beside the caller, unless one is not due yet.
func (s *Store) sweepIfDue() {
	if s.sweeps < 0 {
		return
	}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || now.Before(s.nextSweep) {
		return
	}
	s.nextSweep = now.Add(s.sweeps + rand.N(s.sweeps/4+1)) // many stores do not sweep as one
	s.background.Add(1)
	go func() {
		defer s.background.Done()
		_ = s.sweep(s.ctx) // what it leaves, the next sweep or the keys' TTL frees
	}()
}

// sweepTimeout bounds the sweep of one shard.
const sweepTimeout = time.Second

// sweep frees the hashes whose generation is over, shard by shard, in the background of Redis, and asserts the layout's record anew.
// It cannot race with a writer: the script that frees looks at the label in the same step.
func (s *Store) sweep(ctx context.Context) error {
	if class := s.checked.Load(); class > 0 {
		if err := s.within(ctx, func(ctx context.Context) error { return s.checkLayout(ctx, int(class)-1) }); err != nil {
			s.checked.Store(0) // let a Take find out whether the record still is ours
			return err
		}
	}
	for shard := range s.layout.tags {
		b := newBatch(s.layout)
		for c := range classes {
			b.table(tableRef{shard, c})
		}
		err := s.within(ctx, func(ctx context.Context) error {
			_, err := s.decide(ctx, b.keys(), b.args(modeSweep))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) within(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	return do(ctx)
}
