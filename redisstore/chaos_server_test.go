package redisstore_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore/redistest"
)

// TestChaosMaxClients has others take all the connections that the server allows: who has a connection keeps it, who needs one is told
// at once. Decisions are the store's again once there is room.
func TestChaosMaxClients(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	settled := newTrial(t, server, server.Client(func(o *redis.Options) { o.PoolSize = 1 }), 5*time.Second, 400)
	settled.offer(t, 10, 1)
	late := newTrial(t, server, server.Client(), 5*time.Second, 400)
	left(t, late.direct, late.charge)
	admin := server.Client(func(o *redis.Options) { o.PoolSize = 1 })
	allow := func(clients string) {
		if err := admin.ConfigSet(must(t), "maxclients", clients).Err(); err != nil {
			t.Fatal(err)
		}
	}
	allow("1")
	late.offer(t, 150, 5)
	late.requireFallback(t, "max number of clients reached", "EOF", "reset by peer", "broken pipe")
	settled.offer(t, 10, 1)
	settled.requireStore(t)
	allow("1000")
	late.awaitStore(t)
	settled.requireStore(t)
}

// TestChaosDataLost kills the server under load, twice, and starts it without its data: the budget begins anew with each life, and what
// one life grants is no more than it.
func TestChaosDataLost(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	tr := newTrial(t, server, server.Client(), 2*time.Second, 100)
	for range 2 {
		tr.offer(t, 20, 5)
		stop := beside(func() { tr.offer(t, 30, 10) })
		server.Kill()
		stop()
		stop = beside(func() { tr.offer(t, 30, 10) })
		server.Restart()
		stop()
		tr.awaitStore(t)
	}
	// The pool of go-redis may refuse to dial for a second after so many failures, while what it has dialled serves: the breaker may open
	// once more.
	await(t, "for the budget to be spent", func() bool {
		tr.offer(t, 30, 10)
		return left(t, tr.direct, tr.charge) == 0
	})
	for mode, w := range tr.seen {
		t.Logf("%v: %v, causes %v", mode, w.decided, w.causes)
	}
	tr.requireBound(t, 3)
}

// TestChaosScriptFlush has the server forget its scripts under load: nobody notices, and not one more is granted than there is.
func TestChaosScriptFlush(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	tr := newTrial(t, server, server.Client(), 10*time.Second, 400)
	stop := beside(func() { server.Do("SCRIPT", "FLUSH") })
	tr.offer(t, 300, 5)
	stop()
	tr.requireStore(t)
	tr.requireBound(t, 1)
	granted := int64(0)
	for _, w := range tr.seen {
		granted += w.granted[headgate.FromStore]
	}
	if granted != tr.charge.Limit.Count {
		t.Errorf("%d granted of 900 asked for, want %d", granted, tr.charge.Limit.Count)
	}
}

// TestChaosClock steps the server's clock by an hour, both ways, under a limiter of every algorithm: the store goes on deciding. A step back
// gives nothing and locks nobody out; a step forward counts as an hour, so it gives one capacity and no more, also when the clock is put right.
func TestChaosClock(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client()
	for _, a := range algorithms {
		for _, step := range []time.Duration{time.Hour, -time.Hour} {
			now := newClock()
			limit := headgate.Limit{Algorithm: a, Count: 10, Period: time.Minute}
			seen := newWitness()
			limiter, err := headgate.New(openAt(t, client, "step:"+a.String()+step.String()+":", now), []headgate.Limit{limit},
				headgate.Config{Timeout: 20 * time.Second, Observer: seen})
			if err != nil {
				t.Fatal(err)
			}
			spend := func() (granted int, wait time.Duration) {
				for range 15 {
					d, err := limiter.Allow(must(t), "k")
					if err != nil {
						t.Fatal(err)
					}
					if d.Allowed {
						granted++
					}
					wait = d.RetryAfter
				}
				return granted, wait
			}
			first, _ := spend()
			now.advance(step)
			second, wait := spend()
			want := 0
			if step > 0 {
				want = 10
			}
			if first != 10 || second != want || wait <= 0 || wait > 2*limit.Period {
				t.Errorf("%v, step by %v: granted %d and %d, then a wait of %v; want 10, %d, and at most two periods", a, step, first, second, wait, want)
			}
			now.advance(-step)
			if third, _ := spend(); third > 10 || step > 0 && third > 0 {
				t.Errorf("%v, step by %v and back: granted %d", a, step, third)
			}
			if n, all := seen.only(headgate.FromStore); !all {
				t.Errorf("%v: %v of %d decisions are the store's", a, seen.decided, n)
			}
		}
	}
}
