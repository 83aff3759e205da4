package redisstore_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/lease"
	"github.com/headgate/headgate/redisstore"
	"github.com/headgate/headgate/redisstore/redistest"
	"github.com/headgate/headgate/storetest"
)

// leasing returns leases from store that end with the test.
func leasing(t testing.TB, store headgate.Store, lifetime time.Duration) *lease.Store {
	t.Helper()
	s, err := lease.New(store, lease.Config{Lifetime: lifetime, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestLeasesConform holds leases from a Redis to the suite that every store passes, with a lifetime in which nothing is on its way back.
func TestLeasesConform(t *testing.T) {
	t.Parallel()
	p := &place{client: redistest.Start(t).Client()}
	storetest.Run(t, func(t *testing.T) headgate.Store { return leasing(t, p.open(t), lease.MaxLifetime) })
}

// leaseReplica is one of a fleet, with a connection of its own.
func leaseReplica(t *testing.T, server *redistest.Server, lifetime time.Duration) *lease.Store {
	t.Helper()
	return leasing(t, open(t, server.Client(), redisstore.Config{}), lifetime)
}

// TestLeasesOfAFleet: three replicas, for some seconds, that lease much, spend little while time passes, and then all that they get. No interval
// has more than Burst + Count*(d+L)/Period, where each decision's At is the instant of its tokens.
func TestLeasesOfAFleet(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	const lifetime = 400 * time.Millisecond
	limit := headgate.Limit{Count: 200, Period: time.Second, Burst: 150}
	var (
		mu     sync.Mutex
		grants []time.Time // by the clock of the server
		fleet  sync.WaitGroup
	)
	replicas := make([]*lease.Store, 3)
	for i := range replicas {
		replicas[i] = leaseReplica(t, server, lifetime)
		ask := func() bool {
			d, err := replicas[i].Take(context.Background(), headgate.Charge{Key: "k", Cost: 1, Limit: limit})
			if err != nil {
				t.Error(err)
			}
			if d.Allowed {
				mu.Lock()
				defer mu.Unlock()
				grants = append(grants, d.At)
			}
			return d.Allowed
		}
		fleet.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 3))
			for range 3 {
				for end := time.Now().Add(lifetime); time.Now().Before(end); ask() { // blocks for much
					time.Sleep(time.Duration(random.ExpFloat64() * float64(time.Second) / 130))
				}
				for end := time.Now().Add(2 * lifetime); time.Now().Before(end); ask() { // little is spent, so that leases grow old
					time.Sleep(lifetime / 5)
				}
				for ask() {
				}
			}
		})
	}
	fleet.Wait()
	if n := overBound(limit, lifetime, grants); n > 0 {
		t.Errorf("%d tokens over the bound", n)
	}
	for i, r := range replicas {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
		s := r.Stats()
		if s.Held != 0 || s.Decisions == 0 || s.Leased+s.Refunded != s.Spent+s.GivenBack+s.Stranded {
			t.Errorf("replica %d: %+v, want leases, and all of them accounted for", i, s)
		}
	}
}

// overBound returns by how many tokens, of grants of one, the worst interval exceeds Burst + Count*(d+late)/Period. The sum of all grants until an
// instant, times Period, less Count times that instant, rises over an interval by what is granted in it less what the rate allows.
func overBound(l headgate.Limit, late time.Duration, grants []time.Time) int64 {
	slices.SortFunc(grants, time.Time.Compare)
	period, worst, least := l.Period.Microseconds(), int64(0), int64(math.MaxInt64)
	for i, at := range grants {
		allowed := l.Count * at.Sub(grants[0]).Microseconds()
		least = min(least, int64(i)*period-allowed)
		excess := int64(i+1)*period - allowed - least - l.Capacity()*period - l.Count*late.Microseconds()
		worst = max(worst, (excess+period-1)/period)
	}
	return worst
}
