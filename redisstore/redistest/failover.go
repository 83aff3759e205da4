package redistest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// failoverPatience is for what Sentinel does in its own time: ten seconds until a former primary is made a replica, and more.
const failoverPatience = 60 * time.Second

// orderPatience is the time after which a failover that was ordered is taken to have been given up, and is ordered again.
const orderPatience = 10 * time.Second

// Failover makes the replica the primary and the primary its replica, as an administrator would, and returns the new primary when all
// sentinels know it and the old one, if it can, takes no more writes and is in step.
func (s *Sentinel) Failover(tb testing.TB) *Server {
	tb.Helper()
	old := s.Primary()
	ctx, cancel := context.WithTimeout(context.Background(), failoverPatience)
	defer cancel()
	next := s.other(old)
	err := poll(ctx, func() error {
		if err := s.order(ctx); err != nil {
			return err
		}
		attempt, cancel := context.WithTimeout(ctx, orderPatience)
		defer cancel()
		return poll(attempt, func() error { return s.hasMoved(attempt, next) })
	})
	if err != nil {
		tb.Fatalf("redistest: failover from %s: %v", old.Addr(), err)
	}
	return s.AwaitFailover(tb, old)
}

// order tells a sentinel to fail over. It will not while an earlier failover is under way, or before it has seen the replica well.
func (s *Sentinel) order(ctx context.Context) error {
	err := errors.New("no sentinel is running")
	for _, w := range s.sentinels {
		if !w.running() {
			continue
		}
		admin := redis.NewSentinelClient(w.sentinelOptions())
		err = admin.Failover(ctx, masterName).Err()
		_ = admin.Close()
		break
	}
	if err == nil || strings.HasPrefix(err.Error(), "INPROG") || strings.HasPrefix(err.Error(), "NOGOODSLAVE") {
		return err
	}
	return stopPolling(err)
}

// AwaitFailover returns the new primary when the sentinels that run agree on another than old: after a Kill or a Pause of old, they
// find one by themselves in a few seconds. If old runs, it is then in step with the new one.
func (s *Sentinel) AwaitFailover(tb testing.TB, old *Server) *Server {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), failoverPatience)
	defer cancel()
	next := s.other(old)
	if err := poll(ctx, func() error { return s.hasMoved(ctx, next) }); err != nil {
		tb.Fatalf("redistest: failover from %s: %v", old.Addr(), err)
	}
	if old.running() {
		s.publishEvery(100)
		defer s.publishEvery(publishDefault)
		if err := poll(ctx, func() error { return follows(ctx, old, next) }); err != nil {
			tb.Fatalf("redistest: failover from %s: %v", old.Addr(), err)
		}
	}
	return next
}

// publishEvery sets the publish period of the sentinels.
func (s *Sentinel) publishEvery(ms int) {
	for _, w := range s.sentinels {
		if w.running() {
			debug(w, publishPeriod, ms)
		}
	}
}

// hasMoved returns nil when all sentinels that run, and next itself, take next for the primary.
func (s *Sentinel) hasMoved(ctx context.Context, next *Server) error {
	for _, w := range s.sentinels {
		if !w.running() {
			continue
		}
		if seen, err := s.primarySeenBy(ctx, w); err != nil || seen != next {
			return errors.Join(err, fmt.Errorf("sentinel %s does not see the new primary %s", w.Addr(), next.Addr()))
		}
	}
	return leads(ctx, next)
}
