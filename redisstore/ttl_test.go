package redisstore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore"
	"github.com/headgate/headgate/redisstore/redistest"
)

// TestTTLOutlivesState looks at the TTL of all keys of a store right after each kind of write, at each part of a generation.
func TestTTLOutlivesState(t *testing.T) {
	client := redistest.Start(t).Client()
	for class, g := range redisstore.Generations() {
		t.Run(g.String(), func(t *testing.T) {
			now := newClock()
			store := openAt(t, client, fmt.Sprint("ttl", class, ":"), now)
			c := headgate.Charge{Key: "k", Cost: 1, Limit: limitsOf(class)[0]}
			edge := time.UnixMicro((now.now().UnixMicro()/g.Microseconds() + 1) * g.Microseconds())
			for _, at := range []time.Time{edge, edge.Add(g / 3), edge.Add(g - time.Microsecond), edge.Add(g), edge.Add(3*g - time.Microsecond)} {
				now.set(at)
				take(t, store, c)
				generation := at.UnixMicro() / g.Microseconds()
				end := time.UnixMicro((generation + 2) * g.Microseconds())
				for _, h := range store.Hashes(c, class) {
					ttl := client.PTTL(must(t), h).Val() + time.Second // that may have passed since it was set
					if ttl < end.Sub(at) {
						t.Errorf("at %v a hash ends in %v, want after the end of the next generation in %v", at.UTC(), ttl, end.Sub(at))
					}
				}
			}
			requireTTLs(t, client)
		})
	}
}

// TestLogTTLOutlivesState does the same for a sliding log, after a grant and after what follows it.
func TestLogTTLOutlivesState(t *testing.T) {
	client := redistest.Start(t).Client()
	for _, period := range []time.Duration{time.Millisecond, time.Second, time.Hour, headgate.MaxPeriod} {
		now := newClock()
		store := openAt(t, client, fmt.Sprint("logttl", period, ":"), now)
		c := headgate.Charge{Key: "k", Cost: 2, Limit: headgate.Limit{Algorithm: headgate.SlidingLog, Count: 3, Period: period}}
		take(t, store, c) // granted
		take(t, store, c) // denied
		c.Cost = 1
		if err := store.Refund(must(t), c); err != nil {
			t.Fatal(err)
		}
		if ttl := client.PTTL(must(t), store.LogKey(c)).Val() + time.Second; ttl < period {
			t.Errorf("a log of %v ends in %v", period, ttl)
		}
	}
}

// persist takes the TTL of each key under prefix away.
func persist(t *testing.T, client *redis.Client, prefix string) {
	t.Helper()
	keys, err := scan(must(t), client)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		if !strings.HasPrefix(k, prefix) {
			continue
		}
		if err := client.Persist(must(t), k).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLostTTLIsHealed takes the TTL of each key away: the next take gives one to what it writes, the next sweep to all hashes.
func TestLostTTLIsHealed(t *testing.T) {
	client := redistest.Start(t).Client()
	for _, a := range algorithms {
		t.Run(a.String(), func(t *testing.T) {
			now := newClock()
			prefix := fmt.Sprint("heal", a, ":")
			store := openAt(t, client, prefix, now)
			c := headgate.Charge{Key: "k", Cost: 1, Limit: headgate.Limit{Algorithm: a, Count: 3, Period: time.Second}}
			take(t, store, c)
			persist(t, client, prefix)
			take(t, store, c)
			written := store.LogKey(c)
			if a != headgate.SlidingLog {
				hashes := store.Hashes(c, 0)
				written = hashes[now.now().UnixMicro()/redisstore.Generations()[0].Microseconds()%2]
			}
			if ttl := client.PTTL(must(t), written).Val(); ttl <= 0 {
				t.Errorf("TTL %v after a take, want one", ttl)
			}
			if a != headgate.SlidingLog {
				for _, hash := range store.Hashes(c, 0) {
					if ttl := client.PTTL(must(t), hash).Val(); ttl == -1 {
						t.Errorf("hash %s has no TTL after a take", hash)
					}
				}
			}
			persist(t, client, prefix)
			if err := store.Sweep(must(t)); err != nil {
				t.Fatal(err)
			}
			take(t, store, c) // for the log, which no sweep looks at
			requireTTLs(t, client)
		})
	}
}

// TestHashWithoutTTLLocksNoKey is the story of the crash between INCR and EXPIRE: a state that lost its TTL ends all the same.
func TestHashWithoutTTLLocksNoKey(t *testing.T) {
	client := redistest.Start(t).Client()
	for _, a := range algorithms {
		now := newClock()
		prefix := fmt.Sprint("crash", a, ":")
		store := openAt(t, client, prefix, now)
		c := headgate.Charge{Key: "k", Cost: 3, Limit: headgate.Limit{Algorithm: a, Count: 3, Period: time.Second}}
		d := take(t, store, c)
		persist(t, client, prefix)
		now.advance(d.ResetAfter)
		if d := take(t, store, c); !d.Allowed || d.Remaining != 0 {
			t.Errorf("%v: got %+v once the state is over, want allowed", a, d)
		}
		if err := store.Sweep(must(t)); err != nil {
			t.Fatal(err)
		}
	}
	requireTTLs(t, client)
}
