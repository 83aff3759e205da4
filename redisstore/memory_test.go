package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore/redistest"
)

// BenchmarkMemory measures what a key of 13 bytes takes of Redis, by INFO memory: once all keys have been used, when all have been used
// again in the next generation, when the generation after that has begun, and when all is over and swept. Run it with -benchtime 1x.
func BenchmarkMemory(b *testing.B) {
	for _, limit := range []headgate.Limit{
		{Count: 100, Period: time.Second},
		{Name: "burst", Count: 100, Period: time.Second},
		{Algorithm: headgate.SlidingWindow, Count: 100, Period: time.Second},
		{Algorithm: headgate.SlidingLog, Count: 100, Period: time.Hour}, // its TTL goes by the clock of the server
	} {
		for _, keys := range []int{10_000, 1_000_000} {
			b.Run(fmt.Sprint(limit.Algorithm, limit.Name, "/keys=", keys), func(b *testing.B) {
				for range b.N {
					benchMemory(b, limit, keys)
				}
			})
		}
	}
}

func benchMemory(b *testing.B, limit headgate.Limit, keys int) {
	client := redistest.Start(b).Client()
	store, err := New(client, Config{SweepInterval: -1})
	if err != nil {
		b.Fatal(err)
	}
	now := time.UnixMicro(1_790_000_000_000_000)
	store.SetClock(func() time.Time { return now })
	if err := store.sweep(context.Background()); err != nil { // the server knows the script
		b.Fatal(err)
	}
	before := usedMemory(b, client)
	report := func(unit string) { b.ReportMetric((usedMemory(b, client)-before)/float64(keys), unit) }
	takeFromEach(b, store, limit, keys)
	report("B/key")
	g := classes[0].generation
	now = now.Add(g)
	takeFromEach(b, store, limit, keys)
	report("B/key-rollover")
	now = now.Add(g)
	takeFromEach(b, store, limit, 300) // some in every shard
	report("B/key-after")
	now = now.Add(3 * g)
	if err := store.sweep(context.Background()); err != nil {
		b.Fatal(err)
	}
	report("B/key-over")
}

// takeFromEach takes once from each of the keys, many in a batch.
func takeFromEach(b *testing.B, store *Store, limit headgate.Limit, keys int) {
	ctx := context.Background()
	const size = maxEntries
	for from := 0; from < keys; from += size {
		batch := newBatch(store.layout)
		for i := from; i < min(keys, from+size); i++ {
			c := headgate.Charge{Key: fmt.Sprintf("tenant:%06d", i), Cost: 1, Limit: limit}
			batch.add(store.takeOf(c))
		}
		if _, err := store.decide(ctx, batch, modeDecide); err != nil {
			b.Fatal(err)
		}
	}
}

// usedMemory waits until nothing is being freed in the background.
func usedMemory(b *testing.B, client *redis.Client) float64 {
	for {
		item := client.InfoMap(context.Background(), "memory").Item
		if item("Memory", "lazyfree_pending_objects") != "0" {
			continue
		}
		used, err := strconv.ParseFloat(item("Memory", "used_memory"), 64)
		if err != nil {
			b.Fatal(err)
		}
		return used
	}
}
