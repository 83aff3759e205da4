package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore"
	"github.com/headgate/headgate/redisstore/redistest"
)

// requireLayoutError fails the test unless err says that the state lies in recorded shards, and what to do.
func requireLayoutError(t *testing.T, err error, recorded, ours string) {
	t.Helper()
	if !errors.Is(err, redisstore.ErrLayout) || !errors.Is(err, headgate.ErrStore) {
		t.Fatalf("got %v, want an error that matches ErrLayout and ErrStore", err)
	}
	for _, want := range []string{"has " + recorded, "configured for " + ours, "set Shards to " + recorded, "or use another prefix"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not say %q", err, want)
		}
	}
}

var methods = map[string]func(ctx context.Context, s headgate.Store, c headgate.Charge) error{
	"take": func(ctx context.Context, s headgate.Store, c headgate.Charge) error {
		_, err := s.Take(ctx, c)
		return err
	},
	"refund": func(ctx context.Context, s headgate.Store, c headgate.Charge) error { return s.Refund(ctx, c) },
	"reset":  func(ctx context.Context, s headgate.Store, c headgate.Charge) error { return s.Reset(ctx, c) },
}

// TestOtherNumberOfShards has the first store record its number of shards: those that are configured otherwise fail, whatever they do, and
// change nothing.
func TestOtherNumberOfShards(t *testing.T) {
	server := redistest.Start(t)
	first := open(t, server.Client(), redisstore.Config{})
	c := headgate.Charge{Key: "k", Cost: 1, Limit: hundred(headgate.TokenBucket)}
	take(t, first, c)
	for name, do := range methods {
		t.Run(name, func(t *testing.T) {
			other := open(t, server.Client(), redisstore.Config{Shards: 8})
			requireLayoutError(t, do(must(t), other, c), "16", "8")
			requireLayoutError(t, do(must(t), other, c), "16", "8") // and does not get used to it
		})
	}
	if got := left(t, first, c); got != 99 {
		t.Errorf("%d left, want 99", got)
	}
	take(t, open(t, server.Client(), redisstore.Config{Shards: 8, Prefix: "other:"}), c) // as the error says
}

// TestLostRecord removes the record while state remains: the labels of the hashes know as well, and one that started well is not disturbed.
func TestLostRecord(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client()
	first := open(t, client, redisstore.Config{})
	limit := hundred(headgate.TokenBucket)
	for i := range 300 { // every shard
		take(t, first, headgate.Charge{Key: fmt.Sprint(i), Cost: 1, Limit: limit})
	}
	client.Del(must(t), first.Record())
	for i, shards := range []int{8, 4, 1} { // whose shards are among those of 16
		other := open(t, server.Client(), redisstore.Config{Shards: shards})
		_, err := other.Take(must(t), headgate.Charge{Key: fmt.Sprint(i), Cost: 1, Limit: limit})
		if !errors.Is(err, redisstore.ErrLayout) {
			t.Fatalf("%d shards: got %v, want ErrLayout", shards, err)
		}
		if err := other.Sweep(must(t)); !errors.Is(err, redisstore.ErrLayout) {
			t.Fatalf("sweep with %d shards: got %v, want ErrLayout", shards, err)
		}
		client.Del(must(t), first.Record())
	}
	for i := range 300 {
		if got := left(t, first, headgate.Charge{Key: fmt.Sprint(i), Limit: limit}); got != 99 {
			t.Fatalf("%d left, want 99", got)
		}
	}
	if err := first.Sweep(must(t)); err != nil {
		t.Fatal(err)
	}
	if got := client.Get(must(t), first.Record()).Val(); got != "16" {
		t.Errorf("after a sweep the record says %q, want 16", got)
	}
}

// TestRecordTakenOver lets a store find out at its next sweep that the record has become that of another.
func TestRecordTakenOver(t *testing.T) {
	client := redistest.Start(t).Client()
	store := open(t, client, redisstore.Config{})
	c := headgate.Charge{Key: "k", Cost: 1, Limit: hundred(headgate.TokenBucket)}
	take(t, store, c)
	client.Set(must(t), store.Record(), "64", time.Hour)
	if err := store.Sweep(must(t)); !errors.Is(err, redisstore.ErrLayout) {
		t.Errorf("sweep: got %v, want ErrLayout", err)
	}
	_, err := store.Take(must(t), c)
	requireLayoutError(t, err, "64", "16")
	client.Del(must(t), store.Record())
	take(t, store, c)
}

// TestRecordOutlivesState compares the TTL of the record with those of the hashes, for each class, and whether the store sweeps often,
// seldom or never.
func TestRecordOutlivesState(t *testing.T) {
	client := redistest.Start(t).Client()
	for i, every := range []time.Duration{-1, time.Second, 24 * time.Hour, 1<<63 - 1} {
		store := open(t, client, redisstore.Config{Prefix: fmt.Sprint("outlive", i, ":"), SweepInterval: every})
		for class := range redisstore.Generations() {
			c := aWindow(class)
			take(t, store, c)
			record := client.PTTL(must(t), store.Record()).Val()
			for _, h := range store.Hashes(c, class) {
				ttl := client.PTTL(must(t), h).Val()
				if record < ttl+max(0, min(every, headgate.MaxPeriod)) {
					t.Errorf("class %d, sweeps every %v: the record lasts %v, a hash %v", class, every, record, ttl)
				}
			}
		}
	}
}

// TestDataLost has Redis lose everything, by a restart or FLUSHALL, under stores that go on: keys start anew, and all is recorded again.
func TestDataLost(t *testing.T) {
	server := redistest.Start(t)
	for name, lose := range map[string]func(){
		"restart":  server.Restart,
		"flushall": func() { server.Do("FLUSHALL") },
	} {
		t.Run(name, func(t *testing.T) {
			client := server.Client()
			store := open(t, client, redisstore.Config{})
			c := headgate.Charge{Key: "k", Cost: 60, Limit: hundred(headgate.TokenBucket)}
			take(t, store, c)
			lose()
			await(t, "for the store to be back", func() bool { // the connections of the pool are dead
				_, err := store.Take(must(t), headgate.Charge{Key: "other", Cost: 1, Limit: hundred(headgate.TokenBucket)})
				return err == nil
			})
			if got := left(t, store, c); got != 100 {
				t.Errorf("%d left, want 100: Redis has forgotten", got)
			}
			take(t, store, c)
			if d := take(t, store, c); d.Allowed {
				t.Errorf("got %+v, want denied", d)
			}
			if err := store.Sweep(must(t)); err != nil {
				t.Fatal(err)
			}
			if got := client.Get(must(t), store.Record()).Val(); got != "16" {
				t.Errorf("the record says %q, want 16", got)
			}
		})
	}
}

// TestForeignRecord puts something else where the record would be.
func TestForeignRecord(t *testing.T) {
	client := redistest.Start(t).Client()
	store := open(t, client, redisstore.Config{})
	client.RPush(must(t), store.Record(), "x")
	if _, err := store.Take(must(t), aWindow(0)); !errors.Is(err, headgate.ErrStore) || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("got %v, want WRONGTYPE", err)
	}
	client.Del(must(t), store.Record())
	take(t, store, aWindow(0))
}
