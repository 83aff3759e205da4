//go:build unix

package redistest_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate/redisstore/redistest"
)

func TestCluster(t *testing.T) {
	var pids []int
	t.Run("inner", func(t *testing.T) {
		c := redistest.StartCluster(t, 3)
		for _, s := range c.Nodes() {
			pids = append(pids, s.Pid())
		}
		t.Run("spreads", func(t *testing.T) { spreads(t, c) })
		t.Run("move", func(t *testing.T) { moves(t, c) })
		t.Run("move under load", func(t *testing.T) { movesUnderLoad(t, c) })
		t.Run("half moved", func(t *testing.T) { halfMoved(t, c) })
		t.Run("restarted node", func(t *testing.T) { restartedNode(t, c) })
	})
	if len(pids) != 3 {
		t.Fatalf("%d nodes, want 3", len(pids))
	}
	requireGone(t, pids)
}

// spreads writes to every node through the client.
func spreads(t *testing.T, c *redistest.Cluster) {
	ctx, client := context.Background(), c.Client()
	for i := range 60 {
		if err := client.Set(ctx, fmt.Sprint("k", i), i, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for i, s := range c.Nodes() {
		if n, _ := s.Do("DBSIZE").(int64); n == 0 {
			t.Errorf("node %d has no key of 60", i)
		}
		if s.Addr() != c.Addrs()[i] {
			t.Errorf("node %d is at %s, Addrs says %s", i, s.Addr(), c.Addrs()[i])
		}
	}
}

// elsewhere returns the owner of the key's slot, and another node.
func elsewhere(c *redistest.Cluster, key string) (slot int, from, to *redistest.Server) {
	slot = c.Slot(key)
	from = c.SlotOwner(slot)
	for _, s := range c.Nodes() {
		if s != from {
			to = s
		}
	}
	return slot, from, to
}

func moves(t *testing.T, c *redistest.Cluster) {
	ctx, client := context.Background(), c.Client()
	for i := range 250 { // more than one MIGRATE carries
		if err := client.Set(ctx, fmt.Sprint("{moves}", i), i, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	slot, from, to := elsewhere(c, "{moves}")
	c.MoveSlot(t, slot, from, to)
	if owner := c.SlotOwner(slot); owner != to {
		t.Errorf("slot %d is served by %s, want %s", slot, owner.Addr(), to.Addr())
	}
	for _, s := range c.Nodes() {
		want := int64(0)
		if s == to {
			want = 250
		}
		if n := s.Do("CLUSTER", "COUNTKEYSINSLOT", slot); n != want {
			t.Errorf("%s has %v keys of the slot, want %d", s.Addr(), n, want)
		}
	}
	if got, err := client.Get(ctx, "{moves}249").Int(); got != 249 || err != nil {
		t.Errorf("read %d, %v after the move, want 249", got, err)
	}
}

// movesUnderLoad counts on a key while its slot goes there and back.
func movesUnderLoad(t *testing.T, c *redistest.Cluster) {
	ctx, client := context.Background(), c.Client()
	var sent atomic.Int64
	var stop atomic.Bool
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for !stop.Load() {
				if err := client.Incr(ctx, "{load}n").Err(); err != nil {
					t.Errorf("while the slot moved: %v", err)
					return
				}
				sent.Add(1)
			}
		})
	}
	slot, from, to := elsewhere(c, "{load}")
	c.MoveSlot(t, slot, from, to)
	c.MoveSlot(t, slot, to, from)
	stop.Store(true)
	callers.Wait()
	if n, err := client.Get(ctx, "{load}n").Int64(); n != sent.Load() || err != nil {
		t.Errorf("counted %d, %v; sent %d", n, err, sent.Load())
	}
}

// halfMoved looks at a slot of which one key was moved.
func halfMoved(t *testing.T, c *redistest.Cluster) {
	ctx, client := context.Background(), c.Client()
	for _, k := range []string{"{half}a", "{half}b"} {
		if err := client.Set(ctx, k, "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	slot, from, to := elsewhere(c, "{half}")
	m := c.BeginMove(t, slot, from, to)
	if n := m.MigrateKeys(t, 1); n != 1 {
		t.Errorf("moved %d keys, want 1", n)
	}
	old := from.Client(func(o *redis.Options) { o.MaxRetries = -1 })
	if err := old.Get(ctx, "{half}new").Err(); err == nil || !strings.HasPrefix(err.Error(), "ASK") {
		t.Errorf("a key that is not there: %v, want ASK", err)
	}
	if err := old.MGet(ctx, "{half}a", "{half}b").Err(); err == nil || !strings.HasPrefix(err.Error(), "TRYAGAIN") {
		t.Errorf("one key here, one there: %v, want TRYAGAIN", err)
	}
	m.Finish(t)
	if got, err := client.MGet(ctx, "{half}a", "{half}b").Result(); err != nil || fmt.Sprint(got) != "[v v]" {
		t.Errorf("after the move: %v, %v", got, err)
	}
}

// restartedNode finds its place in the cluster again.
func restartedNode(t *testing.T, c *redistest.Cluster) {
	node := c.Nodes()[1]
	node.Kill()
	if owner := c.SlotOwner(c.Slot("k")); owner == nil {
		t.Error("no owner while a node is away")
	}
	node.Restart()
	c.AwaitUp(t)
	ctx, client := context.Background(), c.Client()
	for i := range 60 {
		if err := client.Set(ctx, fmt.Sprint("k", i), i, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestClusterOfOne(t *testing.T) {
	c := redistest.StartCluster(t, 1, "maxmemory 100mb")
	if err := c.Client().Set(context.Background(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(c.Nodes()[0].Do("CONFIG", "GET", "maxmemory")); got != "[maxmemory 104857600]" {
		t.Errorf("CONFIG GET: %s", got)
	}
}

func TestClusterOfNone(t *testing.T) {
	f := &failingTB{TB: t}
	f.run(func() { redistest.StartCluster(f, 0) })
	if !strings.Contains(f.fatal, "want at least 1") {
		t.Errorf("failed with %q", f.fatal)
	}
}
