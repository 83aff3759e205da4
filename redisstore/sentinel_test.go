package redisstore_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore"
	"github.com/headgate/headgate/redisstore/redistest"
)

// TestFailover has the primary change under a store, by order and by death. The same client works again, and what was replicated is kept.
func TestFailover(t *testing.T) {
	t.Parallel()
	sentinel := redistest.StartSentinel(t)
	store := open(t, sentinel.Client(), redisstore.Config{})
	c := headgate.Charge{Key: "k", Cost: 30, Limit: hundred(headgate.TokenBucket)}
	look := headgate.Charge{Key: "k", Limit: c.Limit}
	take(t, store, c)
	want := int64(70)
	for _, how := range []string{"order", "death"} {
		if n := sentinel.Primary().Do("WAIT", 1, 10_000); n != int64(1) { // replication is behind by a little, else
			t.Fatalf("%v replicas have the take", n)
		}
		if how == "order" {
			sentinel.Failover(t)
		} else {
			old := sentinel.Primary()
			old.Kill()
			sentinel.AwaitFailover(t, old)
		}
		await(t, "for the store to be back", func() bool {
			_, err := store.Take(must(t), look)
			return err == nil
		})
		if got := left(t, store, look); got != want {
			t.Errorf("after a failover by %s: %d left, want %d", how, got, want)
		}
		if d := take(t, store, c); !d.Allowed {
			t.Errorf("after a failover by %s got %+v, want allowed", how, d)
		}
		want -= 30
	}
}

// TestNewHostsClock fails over to hosts whose clocks differ from the old one's: no key is locked out, and none forgets more than the
// time that has passed by the clock.
func TestNewHostsClock(t *testing.T) {
	client := redistest.Start(t).Client()
	for _, step := range []time.Duration{-time.Hour, -time.Minute, -time.Second, -30 * 24 * time.Hour, time.Second} {
		now := newClock()
		store := openAt(t, client, "clock"+step.String()+":", now)
		limits := []headgate.Limit{{Count: 10, Period: time.Minute}}
		for _, a := range algorithms[1:] {
			limits = append(limits, headgate.Limit{Algorithm: a, Count: 10, Period: time.Minute})
		}
		for _, limit := range limits {
			now.set(time.Date(2026, 3, 1, 12, 0, 30, 0, time.UTC))
			c := headgate.Charge{Key: "k", Cost: 10, Limit: limit}
			if d := take(t, store, c); !d.Allowed {
				t.Fatalf("%v: denied at first", limit)
			}
			now.advance(step)
			c.Cost = 1
			d := take(t, store, c)
			if d.Allowed != (d.RetryAfter == 0) {
				t.Errorf("%v, clock steps by %v: got %+v", limit, step, d)
			}
			if step < 0 && d.Allowed {
				t.Errorf("%v, clock steps by %v: allowed, though no time has passed", limit, step)
			}
			if most := 2 * limit.Period; d.RetryAfter > most {
				t.Errorf("%v, clock steps by %v: waits for %v, want at most %v", limit, step, d.RetryAfter, most)
			}
			now.advance(d.RetryAfter)
			if d := take(t, store, c); !d.Allowed {
				t.Errorf("%v, clock steps by %v: denied after the wait: %+v", limit, step, d)
			}
		}
	}
}
