package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore"
	"github.com/headgate/headgate/redisstore/redistest"
)

// TestCluster holds what a Cluster has of its own, on one that these tests share.
func TestCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	for _, tt := range []struct {
		name string
		test func(*testing.T, *redistest.Cluster)
	}{
		{"exercise", clusterExercise},
		{"thousand takes", clusterThousand},
		{"script flush", clusterFlush},
		{"all or nothing", clusterAllOrNothing},
		{"refund", clusterRefund},
		{"hash tag", clusterHashTag},
		{"plain client", clusterPlainClient},
		{"lost reply", clusterLostReply},
		{"rights", clusterRights},
		{"all masters", clusterAllMasters},
		{"moving slot", clusterMove},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.test(t, cluster) })
	}
}

// clusterExercise finds no CROSSSLOT, and no key that a node does not have.
func clusterExercise(t *testing.T, cluster *redistest.Cluster) {
	now := newClock()
	store := openAt(t, cluster.Client(), "exercise:", now)
	if err := exercise(must(t), store, now); err != nil {
		t.Fatal(err)
	}
}

func clusterThousand(t *testing.T, cluster *redistest.Cluster) {
	requireHundred(t, "thousand:", func() redis.UniversalClient { return cluster.Client() })
}

func clusterFlush(t *testing.T, cluster *redistest.Cluster) {
	nodes := cluster.Nodes()
	stop := beside(func() {
		for _, n := range nodes {
			n.Do("SCRIPT", "FLUSH")
		}
	})
	defer stop()
	requireHundred(t, "flush:", func() redis.UniversalClient { return cluster.Client() })
}

// clusterMove moves the slot of the key to another node and back while the takes go on.
func clusterMove(t *testing.T, cluster *redistest.Cluster) {
	nodes := cluster.Nodes()
	for _, a := range algorithms {
		c := headgate.Charge{Key: "moved", Cost: 1, Limit: hundred(a)}
		var stores []*redisstore.Store
		for range 2 {
			stores = append(stores, open(t, cluster.Client(), redisstore.Config{Prefix: fmt.Sprint("move", a, ":")}))
		}
		take(t, stores[0], headgate.Charge{Key: "moved", Cost: 0, Limit: c.Limit}) // the layout is on record
		hashes := stores[0].Hashes(c, 0)
		slot := cluster.Slot(hashes[0])
		owner := cluster.SlotOwner(slot)
		other := nodes[0]
		if other == owner {
			other = nodes[1]
		}
		moves := 0
		stop := beside(func() {
			move := cluster.BeginMove(t, slot, owner, other)
			for move.MigrateKeys(t, 1) > 0 {
			}
			move.Finish(t)
			owner, other = other, owner
			moves++
		})
		sum, err := spend(must(t), 1000, stores, c)
		stop()
		if err != nil {
			t.Errorf("%v: %d takes failed: %v", a, sum.failed, err)
		}
		if sum.granted != 100 {
			t.Errorf("%v: %d of 1000 granted while the slot moved %d times, want 100", a, sum.granted, moves)
		}
		if l := left(t, stores[1], c); l != 0 {
			t.Errorf("%v: %d left, want 0", a, l)
		}
	}
}

// spread returns charges of capacity 100 under each of which the keys lie on different masters.
func spread(store *redisstore.Store, a headgate.Algorithm) []headgate.Charge {
	var charges []headgate.Charge
	used := map[int]bool{}
	for i := 0; len(charges) < 3; i++ {
		key := fmt.Sprint("key", i)
		if master := store.ShardOf(key) * 3 / redisstore.DefaultShards; !used[master] {
			used[master] = true
			charges = append(charges, headgate.Charge{Key: key, Cost: 1, Limit: hundred(a)})
		}
	}
	return charges
}

// clusterRefund gives back what a request over three masters took, with the instant of its decision: all of it comes back.
func clusterRefund(t *testing.T, cluster *redistest.Cluster) {
	for _, a := range algorithms {
		store := open(t, cluster.Client(), redisstore.Config{Prefix: fmt.Sprint("refund", a, ":")})
		charges := spread(store, a)
		d := take(t, store, charges[0], charges[1:]...)
		if err := store.Refund(headgate.WithTakenAt(must(t), d.At), charges[0], charges[1:]...); err != nil {
			t.Fatal(err)
		}
		for i, c := range charges {
			if n := left(t, store, c); n != 100 {
				t.Errorf("%v: charge %d has %d left after its refund, want 100", a, i, n)
			}
		}
	}
}

// clusterAllOrNothing has takes over three masters race with takes of one of the keys alone. No limit is exceeded, and when all is quiet
// each key has been charged for just what was granted.
func clusterAllOrNothing(t *testing.T, cluster *redistest.Cluster) {
	for _, a := range algorithms {
		stores := []*redisstore.Store{
			open(t, cluster.Client(), redisstore.Config{Prefix: fmt.Sprint("all", a, ":")}),
			open(t, cluster.Client(), redisstore.Config{Prefix: fmt.Sprint("all", a, ":")}),
		}
		charges := spread(stores[0], a)
		charges[1].Limit.Count = 60 // denies some that the first has granted
		alone := charges[2]
		alone.Cost = 3
		var both sync.WaitGroup
		var together, single outcome
		both.Go(func() { together, _ = spend(must(t), 200, stores, charges[0], charges[1:]...) })
		both.Go(func() { single, _ = spend(must(t), 30, stores, alone) })
		both.Wait()
		if together.failed+single.failed > 0 {
			t.Fatalf("%v: %d takes failed", a, together.failed+single.failed)
		}
		if together.granted > 60 || together.granted+3*single.granted > 100 {
			t.Errorf("%v: %d and three times %d granted, want at most 60, and 100 in all", a, together.granted, single.granted)
		}
		for i, c := range charges {
			want := c.Limit.Count - int64(together.granted)
			if i == 2 {
				want -= 3 * int64(single.granted)
			}
			if got := left(t, stores[0], c); got != want {
				t.Errorf("%v: charge %d has %d left, want %d", a, i, got, want)
			}
		}
		rest := min(60-together.granted, 100-together.granted-3*single.granted)
		if got := mustSpend(t, 1, stores, charges[0], charges[1:]...); (got == 1) != (rest > 0) {
			t.Errorf("%v: once all is quiet granted %d, with room for %d", a, got, rest)
		}
	}
}

// clusterHashTag puts the keys of one organisation into one slot: a take of several is one step, exact under any load.
func clusterHashTag(t *testing.T, cluster *redistest.Cluster) {
	cfg := redisstore.Config{Prefix: "tagged:", HashTag: func(key string) string { org, _, _ := strings.Cut(key, "/"); return org }}
	calls := new(callCounter)
	client := cluster.Client()
	store := open(t, client, cfg)
	stores := []*redisstore.Store{store, open(t, cluster.Client(), cfg)}
	for _, a := range algorithms {
		org := headgate.Charge{Key: "acme", Cost: 1, Limit: hundred(a)}
		team := headgate.Charge{Key: "acme/team", Cost: 1, Limit: hundred(a)}
		user := headgate.Charge{Key: "acme/user", Cost: 1, Limit: hundred(a)}
		user.Limit.Count = 37
		if got := mustSpend(t, 300, stores, org, team, user); got != 37 {
			t.Errorf("%v: %d granted, want 37", a, got)
		}
		if got := mustSpend(t, 300, stores, org, team); got != 63 {
			t.Errorf("%v: %d granted, want the other 63", a, got)
		}
	}
	client.AddHook(calls)
	take(t, store, headgate.Charge{Key: "acme/a", Cost: 1, Limit: hundred(0)}, headgate.Charge{Key: "acme/b", Cost: 1, Limit: hundred(0)})
	if n := calls.n.Load(); n != 1 {
		t.Errorf("%d commands for charges of one tag, want one", n)
	}
}

// clusterPlainClient uses a client that does not know of slots, as behind a proxy: at the first CROSSSLOT the store splits by slot.
func clusterPlainClient(t *testing.T, cluster *redistest.Cluster) {
	node := cluster.Nodes()[0]
	probe := open(t, cluster.Client(), redisstore.Config{Prefix: "plain:"})
	take(t, probe, headgate.Charge{Key: "k", Cost: 1, Limit: hundred(0)}) // records the layout, wherever that lies
	var charges []headgate.Charge
	for i := 0; len(charges) < 2; i++ { // of two slots of the node
		key := fmt.Sprint("key", i)
		if shard := probe.ShardOf(key); shard < 5 && (len(charges) == 0 || shard != probe.ShardOf(charges[0].Key)) {
			charges = append(charges, headgate.Charge{Key: key, Cost: 60, Limit: hundred(0)})
		}
	}
	prefix := ""
	for i := 0; prefix == ""; i++ { // whose record lies on the node too
		if p := fmt.Sprint("plain", i, ":"); cluster.SlotOwner(cluster.Slot(p+"layout")) == node {
			prefix = p
		}
	}
	store := open(t, node.Client(), redisstore.Config{Prefix: prefix})
	if d := take(t, store, charges[0], charges[1]); !d.Allowed || d.Remaining != 40 {
		t.Errorf("got %+v, want allowed", d)
	}
	if d := take(t, store, charges[0], charges[1]); d.Allowed || d.Remaining != 40 {
		t.Errorf("got %+v, want denied", d)
	}
	if err := store.Refund(must(t), charges[0], charges[1]); err != nil {
		t.Fatal(err)
	}
	if got := left(t, store, charges[1]); got != 100 {
		t.Errorf("%d left, want 100", got)
	}
}

// clusterLostReply loses the reply to a take: it is not sent again, neither to the same node nor to another.
func clusterLostReply(t *testing.T, cluster *redistest.Cluster) {
	var net swallower
	client := cluster.Client(func(o *redis.ClusterOptions) { o.Dialer = net.dial })
	requireOnce(t, &net, client, func() int64 {
		sum := int64(0)
		for _, n := range cluster.Nodes() {
			sum += scriptCalls(t, n)
		}
		return sum
	})
}

// clusterAllMasters takes keys of all shards and finds hashes on every master.
func clusterAllMasters(t *testing.T, cluster *redistest.Cluster) {
	store := open(t, cluster.Client(), redisstore.Config{Prefix: "masters:"})
	for i := range 200 {
		take(t, store, headgate.Charge{Key: fmt.Sprint(i), Cost: 1, Limit: hundred(0)})
	}
	for _, n := range cluster.Nodes() {
		keys, err := scan(must(t), n.Client())
		if err != nil {
			t.Fatal(err)
		}
		hashes := 0
		for _, k := range keys {
			if strings.HasPrefix(k, "masters:{") {
				hashes++
			}
		}
		if hashes < 2*5 || hashes > 2*6 {
			t.Errorf("a master has %d hashes, want two for each of 5 or 6 shards", hashes)
		}
	}
}

// TestClusterDown kills one master: keys of the others are answered with CLUSTERDOWN, hers not at all, and all of them again when it is
// back.
func TestClusterDown(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	store := open(t, cluster.Client(), redisstore.Config{})
	charges := spread(store, headgate.TokenBucket)
	for _, c := range charges {
		take(t, store, c)
	}
	slot := func(c headgate.Charge) int {
		hashes := store.Hashes(c, 0)
		return cluster.Slot(hashes[0])
	}
	dead := cluster.SlotOwner(slot(charges[0]))
	dead.Kill()
	await(t, "for the others to find the cluster down", func() bool {
		_, err := store.Take(must(t), headgate.Charge{Key: charges[1].Key, Limit: charges[1].Limit})
		return err != nil && strings.Contains(err.Error(), "CLUSTERDOWN")
	})
	before := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if _, err := store.Take(ctx, charges[0]); !errors.Is(err, headgate.ErrStore) {
		t.Errorf("got %v after %v, want ErrStore", err, time.Since(before))
	}
	dead.Restart()
	cluster.AwaitUp(t)
	await(t, "for the store to be back", func() bool {
		_, err := store.Take(must(t), headgate.Charge{Key: charges[0].Key, Limit: charges[0].Limit})
		return err == nil
	})
	for _, c := range charges[1:] {
		if got := left(t, store, c); got != 99 {
			t.Errorf("%d left of a key whose master lived, want 99", got)
		}
	}
	if got := left(t, store, charges[0]); got != 100 {
		t.Errorf("%d left of the key whose master lost it, want 100", got)
	}
}
