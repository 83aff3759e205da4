package redisstore_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/denial"
	"github.com/headgate/headgate/redisstore"
	"github.com/headgate/headgate/redisstore/redistest"
	"github.com/headgate/headgate/storetest"
)

// denying returns a denial cache around store that believes a denial to its end: all that changes a counter goes through it.
func denying(t testing.TB, store headgate.Store) *denial.Store {
	t.Helper()
	cache, err := denial.New(store, denial.Config{MaxStaleness: denial.LongestStaleness})
	if err != nil {
		t.Fatal(err)
	}
	return cache
}

// TestDenialsConform holds a denial cache around a Redis to the suite that every store passes. On a Cluster requests of several charges give back
// what they took, which the cache learns from their answers.
func TestDenialsConform(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]redis.UniversalClient{"standalone": redistest.Start(t).Client(), "cluster": redistest.StartCluster(t, 3).Client()} {
		t.Run(name, func(t *testing.T) {
			p := &place{client: client}
			storetest.Run(t, func(t *testing.T) headgate.Store { return denying(t, p.open(t)) })
		})
	}
}

// TestDenialsHoldInRedis: whoever is denied by the cache would be denied by the server, at its own time. A look that is made before each
// request has found that nothing was left, at an instant before the end of the wait.
func TestDenialsHoldInRedis(t *testing.T) {
	t.Parallel()
	store := open(t, redistest.Start(t).Client(), redisstore.Config{})
	cache := denying(t, store)
	for _, a := range algorithms {
		c := headgate.Charge{Key: "k", Cost: 1, Limit: headgate.Limit{Algorithm: a, Count: 2, Period: 60 * time.Millisecond}}
		var due time.Time // when the last denial that Redis made ends
		for grants, saved := 0, cache.Saved(); grants < 20 || cache.Saved() == saved; {
			look := c
			look.Cost = 0
			before := take(t, store, look)
			switch d := take(t, cache, c); {
			case d.Allowed:
				grants++
			case d.Source == headgate.FromStore:
				due = d.At.Add(d.RetryAfter)
			case before.Remaining > 0 || !before.At.Before(due):
				t.Fatalf("%v: %+v, after Redis said %+v", a, d, before)
			case d.Remaining != 0 || d.RetryAfter <= 0 || !d.At.Add(d.RetryAfter).Equal(due):
				t.Fatalf("%v: %+v, want it until %v", a, d, due)
			}
		}
	}
}

// TestDenialsSpareRedis counts the calls that Redis gets of those who hammer a key that stays denied.
func TestDenialsSpareRedis(t *testing.T) {
	t.Parallel()
	counting := &countingStore{Store: open(t, redistest.Start(t).Client(), redisstore.Config{})}
	cache := denying(t, counting)
	for _, a := range algorithms {
		counting.takes.Store(0)
		limit := hundred(a)
		for range 1_000 {
			take(t, cache, headgate.Charge{Key: "k", Cost: 1, Limit: limit})
		}
		if n := counting.takes.Load(); n != 101 {
			t.Errorf("%v: %d calls for 1000 requests, want the 100 grants and one denial", a, n)
		}
		if err := cache.Refund(must(t), headgate.Charge{Key: "k", Cost: 1, Limit: limit}); err != nil {
			t.Fatal(err)
		}
		if d := take(t, cache, headgate.Charge{Key: "k", Cost: 1, Limit: limit}); !d.Allowed {
			t.Errorf("%v: %+v after a refund", a, d)
		}
	}
}

// A countingStore counts the takes of the store in it.
type countingStore struct {
	headgate.Store
	takes atomic.Int64
}

func (s *countingStore) Take(ctx context.Context, first headgate.Charge, more ...headgate.Charge) (headgate.Decision, error) {
	s.takes.Add(1)
	return s.Store.Take(ctx, first, more...)
}
