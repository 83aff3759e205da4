package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore"
	"github.com/headgate/headgate/redisstore/redistest"
)

func inspect(t *testing.T, store *redisstore.Store) redisstore.Server {
	t.Helper()
	server, err := store.Server(must(t))
	if err != nil {
		t.Fatal(err)
	}
	return server
}

// TestServerSaysWhetherItEvicts asks a server under each kind of policy, with and without a bound.
func TestServerSaysWhetherItEvicts(t *testing.T) {
	server := redistest.Start(t)
	store := open(t, server.Client(), redisstore.Config{})
	for _, tt := range []struct {
		bound  int64
		policy string
		evicts bool
	}{
		{0, "noeviction", false}, {0, "allkeys-lru", false}, {100 << 20, "noeviction", false},
		{100 << 20, "allkeys-lru", true}, {100 << 20, "volatile-ttl", true},
	} {
		server.Do("CONFIG", "SET", "maxmemory", fmt.Sprint(tt.bound), "maxmemory-policy", tt.policy)
		got := inspect(t, store)
		if len(got.Nodes) != 1 {
			t.Fatalf("%+v, want one node", got)
		}
		n := got.Nodes[0]
		if got.Evicts() != tt.evicts || n.MaxMemory != tt.bound || n.Policy != tt.policy || n.Evicted != 0 {
			t.Errorf("got %+v, evicts: %v; want %+v", n, got.Evicts(), tt)
		}
		if n.Addr != server.Addr() || n.Mode != "standalone" || n.Version == "" {
			t.Errorf("got %+v, want %s, standalone, of some version", n, server.Addr())
		}
	}
}

// TestServerCountsEvictions fills a server under allkeys-lru: a budget that was spent is whole again, and the server says how many keys
// it dropped.
func TestServerCountsEvictions(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client()
	store := open(t, client, redisstore.Config{})
	c := headgate.Charge{Key: "k", Cost: 100, Limit: hundred(headgate.TokenBucket)}
	take(t, store, c)
	server.Do("CONFIG", "SET", "maxmemory", "1", "maxmemory-policy", "allkeys-lru")
	await(t, "for the server to evict all", func() bool { // each command that wants memory drops some
		_ = client.Set(must(t), "filler", "x", time.Minute).Err()
		return inspect(t, store).Nodes[0].Evicted > 0 && client.DBSize(must(t)).Val() == 0
	})
	server.Do("CONFIG", "SET", "maxmemory", "0")
	if got := left(t, store, c); got != 100 {
		t.Errorf("%d left, want 100: its hash was dropped", got)
	}
}

// TestServerOfCluster has one master of several evict.
func TestServerOfCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	store := open(t, cluster.Client(), redisstore.Config{})
	if got := inspect(t, store); len(got.Nodes) != 3 || got.Evicts() || got.Nodes[0].Mode != "cluster" {
		t.Errorf("got %+v, want three masters that do not evict", got)
	}
	last := cluster.Nodes()[2]
	last.Do("CONFIG", "SET", "maxmemory", fmt.Sprint(100<<20), "maxmemory-policy", "allkeys-lfu")
	got := inspect(t, store)
	if !got.Evicts() {
		t.Errorf("got %+v, want that it evicts", got)
	}
	for _, n := range got.Nodes {
		if n.Evicts() != (n.Addr == last.Addr()) {
			t.Errorf("node %+v, want that %s alone evicts", n, last.Addr())
		}
	}
}

// TestServerFails asks without the right to, a server that hangs, with a client that does not heed contexts, and a store that is closed.
func TestServerFails(t *testing.T) {
	server := redistest.Start(t)
	setUser(server, commands...)
	store := open(t, server.Client(), redisstore.Config{})
	denied, err := redisstore.New(server.Client(func(o *redis.Options) { o.Username, o.Password = "headgate", "secret" }), redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = denied.Server(must(t))
	requireStoreError(t, err, "NOPERM")
	setUser(server, append([]string{"info"}, commands...)...)
	if got := inspect(t, denied); len(got.Nodes) != 1 {
		t.Errorf("got %+v, want a node: INFO is all it needs", got)
	}
	deaf, err := redisstore.New(server.Client(func(o *redis.Options) { o.ContextTimeoutEnabled = false }), redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	inspect(t, store)
	inspect(t, deaf)
	server.Pause()
	for _, s := range []*redisstore.Store{store, deaf} {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		if _, err := s.Server(ctx); !errors.Is(err, headgate.ErrStore) || ctx.Err() == nil {
			t.Errorf("%v while the server hangs, want the deadline", err)
		}
		cancel()
	}
	server.Resume()
	if err := denied.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := denied.Server(must(t)); !errors.Is(err, headgate.ErrClosed) {
		t.Errorf("%v, want ErrClosed", err)
	}
}
