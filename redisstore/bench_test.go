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

// BenchmarkScript measures what a decision costs the server, alone and in batches, pipelined so that the client is not in the way:
// server-us/decision is CPU time of redis-server by its own account. The first rows are floors: a script that does nothing, and scripts that do
// nothing but call the commands without which nothing is decided.
func BenchmarkScript(b *testing.B) {
	client := redistest.Start(b).Client()
	for _, floor := range []struct{ name, source string }{
		{"nothing", "return 1"},
		{"TIME", "redis.call('TIME') return 1"},
		{"TIME+HMGET", "redis.call('TIME') redis.call('HMGET', KEYS[1], '#', ARGV[1]) return 1"},
		{"TIME+HMGET+HSET", "redis.call('TIME') redis.call('HMGET', KEYS[1], '#', ARGV[1]) redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) return 1"},
	} {
		b.Run(floor.name, func(b *testing.B) { benchFloor(b, client, floor.source) })
	}
	for _, algorithm := range []headgate.Algorithm{headgate.TokenBucket, headgate.FixedWindow, headgate.AlignedWindow, headgate.SlidingWindow, headgate.SlidingLog} {
		for _, name := range []string{"", "named"} {
			for _, size := range []int{1, 10, 100, maxEntries} {
				limit := headgate.Limit{Name: name, Algorithm: algorithm, Count: 100, Period: time.Minute}
				kind := "unnamed"
				if name != "" {
					kind = name
				}
				b.Run(fmt.Sprintf("%v/%s/batch=%d", algorithm, kind, size), func(b *testing.B) { benchBatch(b, client, limit, size) })
			}
		}
	}
}

func benchFloor(b *testing.B, client *redis.Client, source string) {
	ctx := context.Background()
	digest, err := client.ScriptLoad(ctx, source).Result()
	if err != nil {
		b.Fatal(err)
	}
	if err := client.HSet(ctx, "k", "#", "c11973376/16").Err(); err != nil {
		b.Fatal(err)
	}
	benchServer(b, client, 1, func(p redis.Pipeliner, i int) {
		p.EvalSha(ctx, digest, []string{"k", "l"}, "tenant:"+strconv.Itoa(i*7919%10_000), "14 bytes state")
	})
}

func benchBatch(b *testing.B, client *redis.Client, limit headgate.Limit, size int) {
	store, err := New(client, Config{Shards: 1})
	if err != nil {
		b.Fatal(err)
	}
	if err := client.FlushAll(context.Background()).Err(); err != nil {
		b.Fatal(err)
	}
	const keys = 10_000
	if err := client.ScriptLoad(context.Background(), decideSource).Err(); err != nil {
		b.Fatal(err)
	}
	next := 0
	warm := newBatch(store.layout) // a key seen for the first time costs more, and once
	for i := range keys {
		c := headgate.Charge{Key: "tenant:" + strconv.Itoa(i), Cost: 1, Limit: limit}
		warm.add(store.takeOf(c))
		if i%500 == 499 {
			if _, err := store.decide(context.Background(), warm, modeDecide); err != nil {
				b.Fatal(err)
			}
			warm = newBatch(store.layout)
		}
	}
	benchServer(b, client, size, func(p redis.Pipeliner, _ int) {
		batch := newBatch(store.layout)
		for range size {
			c := headgate.Charge{Key: "tenant:" + strconv.Itoa(next*7919%keys), Cost: 1, Limit: limit}
			batch.add(store.takeOf(c))
			next++
		}
		command := batch.command(modeDecide)
		command[0], command[1] = "evalsha", store.decideScript.digest
		p.Do(context.Background(), command...)
	})
}

// benchServer runs b.N calls that decide size requests each, and reports the server's time for one request.
func benchServer(b *testing.B, client *redis.Client, size int, call func(p redis.Pipeliner, i int)) {
	ctx := context.Background()
	before := serverTime(b, client)
	b.ResetTimer()
	for i := 0; i < b.N; {
		p := client.Pipeline()
		for range min(50, b.N-i) {
			call(p, i)
			i++
		}
		if _, err := p.Exec(ctx); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	b.ReportMetric((serverTime(b, client)-before)*1e6/float64(b.N*size), "server-us/decision")
}

func serverTime(b *testing.B, client *redis.Client) float64 {
	cpu := client.InfoMap(context.Background(), "cpu").Item
	user, err := strconv.ParseFloat(cpu("CPU", "used_cpu_user"), 64)
	if err != nil {
		b.Fatal(err)
	}
	system, err := strconv.ParseFloat(cpu("CPU", "used_cpu_sys"), 64)
	if err != nil {
		b.Fatal(err)
	}
	return user + system
}
