package redisstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
)

// record sees to it, once and whenever a class of a longer life is first used, that the number of shards is on record and is ours.
// The record outlives whatever state is written: each sweep, or where there are none what takes its place, asserts it anew.
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
	lasts := lifetime(class) + 2*s.tendEvery()
	v, err := s.conn.eval(ctx, s.layoutScript, newCall(s.layout.record(), shards, lasts.Milliseconds()))
	if err != nil {
		return s.explain(err)
	}
	if recorded, _ := v.(string); recorded != strconv.Itoa(shards) {
		return layoutError(s.layout.prefix, recorded, shards)
	}
	return nil
}

// tendEvery is how often the store looks after what it has in Redis: at least once a year.
func (s *Store) tendEvery() time.Duration {
	if s.sweeps < 0 {
		return DefaultSweepInterval
	}
	return min(s.sweeps, headgate.MaxPeriod)
}

// tendIfDue starts a sweep beside the caller, unless one is not due yet. A store that does not sweep asserts the layout's record.
func (s *Store) tendIfDue() {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || now.Before(s.nextTend) {
		return
	}
	every := s.tendEvery()
	s.nextTend = now.Add(every + rand.N(every/4+1)) // many stores do not sweep as one
	s.background.Add(1)
	go func() {
		defer s.background.Done()
		if s.sweeps < 0 {
			_ = s.assertRecord(s.ctx) // a Take finds out what is amiss
			return
		}
		_ = s.sweep(s.ctx) // what it leaves, the next sweep or the keys' TTL frees
	}()
}

// assertRecord has the record of the layout last on, or made again.
func (s *Store) assertRecord(ctx context.Context) error {
	class := s.checked.Load()
	if class == 0 {
		return nil
	}
	err := s.within(ctx, func(ctx context.Context) error { return s.checkLayout(ctx, int(class)-1) })
	if err != nil {
		s.checked.Store(0) // let a Take find out whether the record still is ours
	}
	return err
}

// sweepTimeout bounds the sweep of one shard.
const sweepTimeout = time.Second

// sweep frees the hashes whose generation is over, shard by shard, in the background of Redis, and asserts the layout's record anew.
// It cannot race with a writer: the script that frees looks at the label in the same step. Where Redis answers with an error, it
// goes on with the next shard.
func (s *Store) sweep(ctx context.Context) error {
	if err := s.assertRecord(ctx); err != nil {
		return err
	}
	var failed []error
	for shard := range s.layout.tags {
		b := newBatch(s.layout)
		for c := range classes {
			b.table(tableRef{shard, c})
		}
		err := s.within(ctx, func(ctx context.Context) error {
			_, err := s.decide(ctx, b, modeSweep)
			return err
		})
		var answer redis.Error
		if err != nil && !errors.As(err, &answer) {
			return errors.Join(append(failed, err)...)
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func (s *Store) within(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	return do(ctx)
}
