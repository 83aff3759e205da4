package redisstore_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore"
	"github.com/headgate/headgate/redisstore/redistest"
)

// TestSlotIsThatOfRedis holds the hash slot of every tag, and of other words, to what a real Cluster node computes.
func TestSlotIsThatOfRedis(t *testing.T) {
	client := redistest.Start(t, "cluster-enabled yes").Client()
	words := append(redisstore.ShardTags(1024), "", "foo", "123456789", "\xff\x80")
	pipe := client.Pipeline()
	var slots []*redis.IntCmd
	for _, w := range words {
		slots = append(slots, pipe.ClusterKeySlot(must(t), w))
	}
	if _, err := pipe.Exec(must(t)); err != nil {
		t.Fatal(err)
	}
	for i, w := range words {
		if got := redisstore.Slot(w); int64(got) != slots[i].Val() {
			t.Errorf("slot of %q is %d, want %d", w, got, slots[i].Val())
		}
	}
}

// TestShardsLieEvenly counts the shards of each master of a Cluster whose masters hold equal ranges of slots. docs/redis.md states these.
func TestShardsLieEvenly(t *testing.T) {
	for _, tt := range []struct{ shards, masters, least, most int }{
		{16, 3, 5, 6}, {16, 6, 2, 3}, {16, 10, 1, 2},
		{64, 3, 21, 22}, {64, 6, 10, 11}, {64, 10, 6, 7},
		{256, 3, 85, 86}, {256, 6, 42, 43}, {256, 10, 25, 26},
		{1024, 3, 341, 342}, {1024, 6, 170, 171}, {1024, 10, 102, 103},
	} {
		counts := make([]int, tt.masters)
		for _, tag := range redisstore.ShardTags(tt.shards) {
			for m := range tt.masters {
				if s := int(redisstore.Slot(tag)); s >= 16384*m/tt.masters && s < 16384*(m+1)/tt.masters {
					counts[m]++
				}
			}
		}
		least, most := tt.shards, 0
		for _, n := range counts {
			least, most = min(least, n), max(most, n)
		}
		if least != tt.least || most != tt.most {
			t.Errorf("%d shards on %d masters: %v, want %d to %d each", tt.shards, tt.masters, counts, tt.least, tt.most)
		}
	}
}

// TestTags says that there is one tag for each shard, each in a part of its own of the slots, and that tag 0 is among those of any number
// of shards: so two stores that disagree about the number meet in a shard.
func TestTags(t *testing.T) {
	for n := 1; n <= 1024; n++ {
		tags := redisstore.ShardTags(n)
		for i, tag := range tags {
			if part := int(redisstore.Slot(tag)) * n / 16384; part != i {
				t.Fatalf("tag %d of %d lies in part %d", i, n, part)
			}
		}
		if !slices.Contains(tags, "0") {
			t.Fatalf("%d shards have no tag 0", n)
		}
	}
}

// TestKeysSpreadOverShards holds the number of keys in each shard to what chance makes of it, for keys as people make them.
func TestKeysSpreadOverShards(t *testing.T) {
	client := redistest.Start(t).Client() // which is not asked
	const keys = 20_000
	for _, shards := range []int{2, 10, 16, 64, 1024} {
		store := open(t, client, redisstore.Config{Shards: shards})
		for _, form := range []string{"%d", "tenant:%d", "user:%08d", "10.0.%d.1", "%d\x00"} {
			counts := make([]int, shards)
			for i := range keys {
				counts[store.ShardOf(fmt.Sprintf(form, i))]++
			}
			mean := float64(keys) / float64(shards)
			for shard, n := range counts {
				if math.Abs(float64(n)-mean) > 6*math.Sqrt(mean) {
					t.Errorf("%d shards, keys %q: shard %d has %d, want %.0f give or take %.0f", shards, form, shard, n, mean, 6*math.Sqrt(mean))
				}
			}
		}
	}
}

// TestFieldsAreUnambiguous makes charges of few bytes, so that one's key looks like another's limit: two have one field only if they have one
// counter.
func TestFieldsAreUnambiguous(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	word := func(alphabet string, n int) string {
		b := make([]byte, random.IntN(n))
		for i := range b {
			b[i] = alphabet[random.IntN(len(alphabet))]
		}
		return string(b)
	}
	owner := map[string]string{}
	for range 100_000 {
		c := headgate.Charge{Key: "1" + word("=1/sb\x00 ", 6), Limit: headgate.Limit{
			Name: word("=1/sb ", 4), Algorithm: headgate.Algorithm(random.IntN(5)), Count: 1 + random.Int64N(2), Period: time.Second,
		}}
		counter := fmt.Sprintf("%q %q", c.Key, c.Limit.ID())
		if other, ok := owner[redisstore.Field(c)]; ok && other != counter {
			t.Fatalf("%s and %s have one field", other, counter)
		}
		owner[redisstore.Field(c)] = counter
	}
	if owner["#"] != "" {
		t.Error("the field of a counter is the label")
	}
}

// TestAnyBytes takes from keys that look alike, hold what means something to Redis, or to the layout, or are as long as they may be.
func TestAnyBytes(t *testing.T) {
	client := redistest.Start(t).Client()
	store := open(t, client, redisstore.Config{Shards: 2})
	keys := []string{
		"a", "ab", "a\x00", "\x00a", "\x00", "#", "{0}", "}{", "{", "a{b}c", "\r\n", "\xff\xfe", "h\u00e9", " ", "*", "layout", "s0",
		strings.Repeat("x", headgate.MaxKey), strings.Repeat("\xff", headgate.MaxKey-1),
	}
	for _, a := range algorithms {
		for _, name := range []string{"", "n", "{0}", strings.Repeat("~", headgate.MaxName)} {
			limit := headgate.Limit{Name: name, Algorithm: a, Count: 5, Period: headgate.MaxPeriod}
			for i, key := range keys {
				take(t, store, headgate.Charge{Key: key, Cost: int64(i % 5), Limit: limit})
			}
			for i, key := range keys {
				if got := left(t, store, headgate.Charge{Key: key, Limit: limit}); got != 5-int64(i%5) {
					t.Fatalf("%v %q: %d left of key %d, want %d", a, name, got, i, 5-i%5)
				}
			}
		}
	}
}

// TestPrefixSeparatesStores takes one key under prefixes of which one begins with the other.
func TestPrefixSeparatesStores(t *testing.T) {
	client := redistest.Start(t).Client()
	var stores []*redisstore.Store
	for _, prefix := range []string{"a", "a:", "a:layout", "", "b*"} {
		stores = append(stores, open(t, client, redisstore.Config{Prefix: prefix, Shards: 1 + len(stores)}))
	}
	for _, a := range algorithms {
		c := headgate.Charge{Key: "k", Cost: 1, Limit: headgate.Limit{Algorithm: a, Count: 1, Period: headgate.MaxPeriod}}
		for i, s := range stores {
			if d := take(t, s, c); !d.Allowed {
				t.Errorf("%v: store %d is denied what another took", a, i)
			}
		}
	}
}

// TestHashTag puts keys of one tag into one shard, whose keys have one slot.
func TestHashTag(t *testing.T) {
	client := redistest.Start(t).Client()
	store := open(t, client, redisstore.Config{HashTag: func(key string) string { org, _, _ := strings.Cut(key, "/"); return org }})
	used := map[int]bool{}
	for org := range 64 {
		shard := store.ShardOf(fmt.Sprint("org", org))
		used[shard] = true
		for user := range 10 {
			if got := store.ShardOf(fmt.Sprint("org", org, "/", user)); got != shard {
				t.Fatalf("a user of org%d lies in shard %d, others in %d", org, got, shard)
			}
		}
	}
	if len(used) < 12 {
		t.Errorf("64 tags use %d of 16 shards", len(used))
	}
	if store.ShardOf("/a") == store.ShardOf("/b") && store.ShardOf("/b") == store.ShardOf("/c") && store.ShardOf("/c") == store.ShardOf("/d") {
		t.Error("keys without a tag lie in one shard, want each by the whole of it")
	}
}

// exercise does everything that a store can do, with each algorithm, limits with and without a name, new numbers, and over the edges of
// generations.
func exercise(ctx context.Context, store *redisstore.Store, now *clock) error {
	for _, a := range algorithms {
		for _, name := range []string{"", "n"} {
			limit := headgate.Limit{Name: name, Algorithm: a, Count: 3, Period: 4 * time.Second}
			c := headgate.Charge{Key: "k", Cost: 2, Limit: limit}
			steps := []func() error{
				func() error { _, err := store.Take(ctx, c); return err },
				func() error { now.advance(time.Second); _, err := store.Take(ctx, c); return err },
				func() error { c.Cost = 1; _, err := store.Take(ctx, c); return err },
				func() error { now.advance(3 * time.Second); _, err := store.Take(ctx, c); return err }, // the first grant has expired alone
				func() error { c.Cost = 2; return store.Refund(ctx, c) },
				func() error { now.advance(10 * time.Second); _, err := store.Take(ctx, c); return err },
				func() error { c.Cost = 1; return store.Refund(ctx, c) },
				func() error { c.Limit.Period = time.Hour; _, err := store.Take(ctx, c); return err },
				func() error { c.Cost = 0; _, err := store.Take(ctx, c); return err },
				func() error {
					_, err := store.Take(ctx, c, headgate.Charge{Key: "other", Cost: 9, Limit: limit}, headgate.Charge{Key: "third", Cost: 1, Limit: limit})
					return err
				},
				func() error { return store.Reset(ctx, c) },
				func() error { now.advance(time.Hour); return store.Sweep(ctx) },
			}
			for i, do := range steps {
				if err := do(); err != nil {
					return fmt.Errorf("%v %q, step %d: %w", a, name, i, err)
				}
			}
		}
	}
	return nil
}

// TestKeysAreDeclared watches what the scripts do, by MONITOR: each key that one touches is in its KEYS, and all of those have the prefix.
func TestKeysAreDeclared(t *testing.T) {
	server := redistest.Start(t)
	now := newClock()
	store := openAt(t, server.Client(), "pre:", now)
	conn, err := net.Dial("tcp", server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "MONITOR\r\n"); err != nil {
		t.Fatal(err)
	}
	monitor := bufio.NewScanner(conn)
	monitor.Buffer(nil, 1<<20)
	if !monitor.Scan() || monitor.Text() != "+OK" {
		t.Fatalf("MONITOR answered %q, %v", monitor.Text(), monitor.Err())
	}
	if err := exercise(must(t), store, now); err != nil {
		t.Fatal(err)
	}
	server.Do("ECHO", "the end")
	declared, touched := "", 0
	for monitor.Scan() {
		line := monitor.Text()
		if strings.Contains(line, `"the end"`) {
			break
		}
		who, command, _ := strings.Cut(line, "] ")
		words := strings.Split(command, " ")
		switch {
		case len(words) > 2 && strings.HasPrefix(strings.ToLower(command), `"eval`):
			declared = command
		case strings.HasSuffix(who, " lua") && words[0] != `"TIME"`:
			touched++
			if key := words[1]; !strings.Contains(declared, " "+key+" ") || !strings.HasPrefix(key, `"pre:`) {
				t.Errorf("%.60s touches what %.300s does not declare", command, declared)
			}
		}
	}
	if touched < 200 {
		t.Errorf("saw %d commands of scripts, want hundreds", touched)
	}
}
