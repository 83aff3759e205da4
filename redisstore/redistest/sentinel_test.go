//go:build unix

package redistest_test

import (
	"context"
	"testing"

	"github.com/headgate/headgate/redisstore/redistest"
)

func TestSentinel(t *testing.T) {
	var pids []int
	t.Run("inner", func(t *testing.T) {
		s := redistest.StartSentinel(t)
		for _, server := range append(s.Sentinels(), s.Primary(), s.Replica()) {
			pids = append(pids, server.Pid())
		}
		if len(s.Addrs()) != 3 || s.MasterName() == "" {
			t.Errorf("sentinels %v of %q, want 3", s.Addrs(), s.MasterName())
		}
		t.Run("failover by order", func(t *testing.T) { failsOver(t, s) })
		t.Run("and back", func(t *testing.T) { failsOver(t, s) })
		t.Run("failover after a kill", func(t *testing.T) { failsOverAlone(t, s) })
	})
	if len(pids) != 5 {
		t.Fatalf("%d processes, want 5", len(pids))
	}
	requireGone(t, pids)
}

func failsOver(t *testing.T, s *redistest.Sentinel) {
	ctx, client := context.Background(), s.Client()
	old := s.Primary()
	if err := client.Set(ctx, "k", "before", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if next := s.Failover(t); next == old || next != s.Primary() || old != s.Replica() {
		t.Errorf("primary was %s, Failover said %s, now it is %s", old.Addr(), next.Addr(), s.Primary().Addr())
	}
	direct := old.Client()
	if err := direct.Set(ctx, "k", "lost", 0).Err(); err == nil {
		t.Error("the old primary still takes writes")
	}
	fresh := s.Client()
	if err := fresh.Set(ctx, "k", "after", 0).Err(); err != nil {
		t.Errorf("a new client after the failover: %v", err)
	}
	if got, err := client.Get(ctx, "k").Result(); got != "after" || err != nil {
		t.Errorf("the client from before reads %q, %v, want after", got, err)
	}
}

func failsOverAlone(t *testing.T, s *redistest.Sentinel) {
	old := s.Primary()
	old.Kill()
	next := s.AwaitFailover(t, old)
	if err := s.Client().Set(context.Background(), "k", "v", 0).Err(); err != nil {
		t.Errorf("write to %s: %v", next.Addr(), err)
	}
}
