package redisstore_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/history"
	"github.com/headgate/headgate/internal/scenario"
	"github.com/headgate/headgate/redisstore"
	"github.com/headgate/headgate/redisstore/redistest"
	"github.com/headgate/headgate/storetest"
)

// A place is a Redis, of whatever kind, on which stores are opened.
type place struct {
	client   redis.UniversalClient
	prefixes atomic.Int64
}

// open returns a store under a prefix of its own.
func (p *place) open(t testing.TB) *redisstore.Store {
	t.Helper()
	store, err := redisstore.New(p.client, redisstore.Config{Prefix: fmt.Sprint("place", p.prefixes.Add(1), ":")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// openAt returns a store, and what sets its clock.
func (p *place) openAt(t testing.TB) (*redisstore.Store, func(time.Time)) {
	now := newClock()
	store := p.open(t)
	store.SetClock(now.now)
	return store, now.set
}

// conform runs the suite that every store passes and the stories that every store tells.
func conform(t *testing.T, client redis.UniversalClient) {
	p := &place{client: client}
	t.Run("suite", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) headgate.Store { return p.open(t) })
	})
	t.Run("stories", func(t *testing.T) {
		scenario.Run(t, "../testdata/scenarios", func(t *testing.T) (headgate.Store, func(time.Time)) { return p.openAt(t) })
	})
	requireTTLs(t, client)
}

func TestStandaloneConforms(t *testing.T) {
	t.Parallel()
	conform(t, redistest.Start(t).Client())
}

func TestClusterConforms(t *testing.T) {
	t.Parallel()
	conform(t, redistest.StartCluster(t, 3).Client())
}

func TestSentinelConforms(t *testing.T) {
	t.Parallel()
	conform(t, redistest.StartSentinel(t).Client())
}

// TestHistories plays random histories, by the seeds with which the memory store is played them: what agrees with the model there and
// here agrees with the other. Each seed has a store of its own, and each a fresh prefix.
func TestHistories(t *testing.T) {
	play(t, redistest.Start(t).Client(), 300)
}

func TestClusterHistories(t *testing.T) {
	t.Parallel()
	play(t, redistest.StartCluster(t, 3).Client(), 40)
}

func play(t *testing.T, client redis.UniversalClient, seeds uint64) {
	p := &place{client: client}
	for seed := range seeds {
		store, setNow := p.openAt(t)
		history.Run(t, seed, store, setNow)
	}
	requireTTLs(t, client)
}

// BenchmarkStore measures a store on a server of its own, on the same machine.
func BenchmarkStore(b *testing.B) {
	p := &place{client: redistest.Start(b).Client()}
	storetest.Bench(b, func(b *testing.B) headgate.Store { return p.open(b) })
}
