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

// secretKey is a limiter key that no error may tell.
const secretKey = "s3cr3t-k3y"

// requireStoreError fails the test unless err is one of the store that says what Redis said, and not the key.
func requireStoreError(t *testing.T, err error, says string) {
	t.Helper()
	if !errors.Is(err, headgate.ErrStore) {
		t.Fatalf("got %v, want an error that matches ErrStore", err)
	}
	if !strings.Contains(err.Error(), says) {
		t.Errorf("error %q does not say %q", err, says)
	}
	if strings.Contains(err.Error(), secretKey) {
		t.Errorf("error %q tells the key", err)
	}
}

// TestWrongType puts keys of other types where a hash or a log would be: what needs them fails, and changes nothing; all else works.
func TestWrongType(t *testing.T) {
	client := redistest.Start(t).Client()
	for _, a := range algorithms {
		t.Run(a.String(), func(t *testing.T) {
			store := open(t, client, redisstore.Config{Prefix: fmt.Sprint("type", a, ":")})
			broken := headgate.Charge{Key: secretKey, Cost: 1, Limit: hundred(a)}
			well := headgate.Charge{Key: "well", Cost: 1, Limit: hundred(a)}
			for i := 0; store.ShardOf(well.Key) == store.ShardOf(broken.Key); i++ {
				well.Key = fmt.Sprint("well", i)
			}
			take(t, store, well)
			hashes := store.Hashes(broken, redisstore.ClassOf(broken.Limit))
			foreign := append(hashes[:], store.LogKey(broken))
			for _, k := range foreign {
				client.Set(must(t), k, "x", time.Hour)
			}
			for name, do := range methods {
				err := do(must(t), store, broken)
				if err == nil {
					t.Errorf("%s did not fail", name)
				} else {
					requireStoreError(t, err, "WRONGTYPE")
				}
			}
			if _, err := store.Take(must(t), well, broken); err == nil {
				t.Error("a take of both did not fail")
			}
			if got := left(t, store, well); got != 99 {
				t.Errorf("%d left of the other key, want 99: all or nothing", got)
			}
			for _, k := range foreign {
				if got := client.Get(must(t), k).Val(); got != "x" {
					t.Errorf("the foreign key %q holds %q", k, got)
				}
				client.Del(must(t), k)
			}
			if d := take(t, store, well, broken); !d.Allowed || d.Remaining != 98 {
				t.Errorf("once the keys are gone got %+v, want allowed", d)
			}
		})
	}
}

// TestOutOfMemory fills Redis: a take that has to write is an error, and takes nothing, while a look and a denial are answered.
func TestOutOfMemory(t *testing.T) {
	server := redistest.Start(t, "maxmemory-policy noeviction")
	for _, a := range algorithms {
		t.Run(a.String(), func(t *testing.T) {
			store := open(t, server.Client(), redisstore.Config{Prefix: fmt.Sprint("oom", a, ":")})
			c := headgate.Charge{Key: secretKey, Cost: 60, Limit: hundred(a)}
			take(t, store, c)
			defer server.Do("CONFIG", "SET", "maxmemory", "0")
			server.Do("CONFIG", "SET", "maxmemory", "1")
			c.Cost = 40
			_, err := store.Take(must(t), c)
			requireStoreError(t, err, "OOM")
			if got := left(t, store, c); got != 40 {
				t.Errorf("%d left, want 40", got)
			}
			c.Cost = 41
			if d := take(t, store, c); d.Allowed {
				t.Errorf("got %+v, want denied", d)
			}
			if a != headgate.SlidingLog { // which frees something first
				requireStoreError(t, store.Refund(must(t), c), "OOM")
			}
			if err := store.Reset(must(t), headgate.Charge{Key: "never seen", Limit: c.Limit}); err != nil {
				t.Errorf("reset: %v", err)
			}
			fresh := open(t, server.Client(), redisstore.Config{Prefix: "fresh:"})
			_, err = fresh.Take(must(t), c)
			requireStoreError(t, err, "OOM")
			server.Do("CONFIG", "SET", "maxmemory", "0")
			c.Cost = 40
			if d := take(t, store, c); !d.Allowed || d.Remaining != 0 {
				t.Errorf("with memory again got %+v, want allowed", d)
			}
		})
	}
}

// TestReadOnly makes the server the replica of another, and then none again. A take fails meanwhile, and lets go of its connection, so
// that where the name of the server has come to mean another one, that is found.
func TestReadOnly(t *testing.T) {
	primary, server := redistest.Start(t, "repl-diskless-sync-delay 0"), redistest.Start(t)
	client := server.Client(func(o *redis.Options) { o.PoolSize = 1 })
	store := open(t, client, redisstore.Config{})
	c := headgate.Charge{Key: secretKey, Cost: 60, Limit: hundred(headgate.TokenBucket)}
	take(t, store, c)
	host, port, _ := strings.Cut(primary.Addr(), ":")
	server.Do("REPLICAOF", host, port)
	await(t, "for the replica to be in step", func() bool {
		info, _ := server.Do("INFO", "replication").(string)
		return strings.Contains(info, "master_link_status:up")
	})
	connection := client.ClientID(must(t)).Val()
	_, err := store.Take(must(t), c)
	requireStoreError(t, err, "READONLY")
	if client.ClientID(must(t)).Val() == connection {
		t.Error("the connection to a server that is read-only was kept")
	}
	server.Do("REPLICAOF", "NO", "ONE")
	if d := take(t, store, c); !d.Allowed || d.Remaining != 40 {
		t.Errorf("got %+v, want allowed: the other server knew nothing of the key", d)
	}
}

// TestLoading has the server load its data, slowly.
func TestLoading(t *testing.T) {
	server := redistest.Start(t, "enable-debug-command yes", "loading-process-events-interval-bytes 1024", "key-load-delay 0")
	client := server.Client()
	store := open(t, client, redisstore.Config{})
	c := headgate.Charge{Key: secretKey, Cost: 60, Limit: hundred(headgate.TokenBucket)}
	take(t, store, c)
	pipe := client.Pipeline()
	for i := range 20_000 {
		pipe.Set(must(t), fmt.Sprint("filler", i), strings.Repeat("x", 100), time.Hour)
	}
	if _, err := pipe.Exec(must(t)); err != nil {
		t.Fatal(err)
	}
	server.Do("CONFIG", "SET", "key-load-delay", "300") // microseconds: six seconds in all, of which few pass
	var reload sync.WaitGroup
	reload.Go(func() {
		server.Client(func(o *redis.Options) { o.ReadTimeout = time.Minute }).Do(context.Background(), "DEBUG", "RELOAD")
	})
	await(t, "for the server to load", func() bool {
		info, _ := server.Do("INFO", "persistence").(string)
		return strings.Contains(info, "loading:1")
	})
	_, err := store.Take(must(t), c)
	requireStoreError(t, err, "LOADING")
	server.Do("CONFIG", "SET", "key-load-delay", "0")
	reload.Wait()
	if d := take(t, store, c); d.Allowed || d.Remaining != 40 {
		t.Errorf("got %+v, want denied with 40 left", d)
	}
}

// TestPassword connects without a password and with a wrong one.
func TestPassword(t *testing.T) {
	server := redistest.Start(t)
	server.Do("ACL", "SETUSER", "headgate", "on", ">right", "~*", "+@all")
	for password, says := range map[string]string{"wrong": "WRONGPASS", "right": ""} {
		client := server.Client(func(o *redis.Options) { o.Username, o.Password = "headgate", password })
		store, err := redisstore.New(client, redisstore.Config{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = store.Take(must(t), headgate.Charge{Key: secretKey, Cost: 1, Limit: hundred(0)})
		if says == "" {
			if err != nil {
				t.Errorf("with the right password got %v", err)
			}
			continue
		}
		requireStoreError(t, err, says)
		if strings.Contains(err.Error(), "wrong") {
			t.Errorf("error %q tells the password", err)
		}
	}
	server.Do("ACL", "SETUSER", "default", "off")
	store, err := redisstore.New(server.Client(), redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Take(must(t), headgate.Charge{Key: secretKey, Cost: 1, Limit: hundred(0)})
	requireStoreError(t, err, "NOAUTH")
}

// TestEvictedHash does by hand what allkeys eviction does: a whole hash goes. Its keys start anew, and all else stays.
func TestEvictedHash(t *testing.T) {
	client := redistest.Start(t).Client()
	now := newClock()
	store := openAt(t, client, "evict:", now)
	limit := named(headgate.FixedWindow, 0)
	limit.Name = ""
	g := redisstore.Generations()[0]
	now.set(time.UnixMicro((now.now().UnixMicro()/g.Microseconds()+1)*g.Microseconds() - 1))
	former := headgate.Charge{Key: "former", Cost: 6, Limit: limit}
	current, other := former, former
	for i := 0; store.ShardOf(current.Key) != store.ShardOf(former.Key) || current.Key == former.Key; i++ {
		current.Key = fmt.Sprint("current", i)
	}
	for i := 0; store.ShardOf(other.Key) == store.ShardOf(former.Key); i++ {
		other.Key = fmt.Sprint("other", i)
	}
	take(t, store, former)
	take(t, store, other)
	now.advance(time.Microsecond)
	take(t, store, current)
	want := map[string]int64{former.Key: 4, current.Key: 4, other.Key: 4}
	check := func() {
		t.Helper()
		for _, c := range []headgate.Charge{former, current, other} {
			if got := left(t, store, c); got != want[c.Key] {
				t.Errorf("%d left of %s, want %d", got, c.Key, want[c.Key])
			}
		}
	}
	check()
	hashes := store.Hashes(former, 0)
	parity := now.now().UnixMicro() / g.Microseconds() % 2
	client.Unlink(must(t), hashes[1-parity])
	want[former.Key] = 10
	check()
	take(t, store, former)
	want[former.Key] = 4
	check()
	client.Unlink(must(t), hashes[parity])
	want[former.Key], want[current.Key] = 10, 10
	check()
	take(t, store, current)
	want[current.Key] = 4
	check()
	requireTTLs(t, client)
}
