package proof_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/lease"
	"github.com/headgate/headgate/redisstore"
	"github.com/headgate/headgate/redisstore/redistest"
)

// leaseLimit is what the fleet of BenchmarkLeases shares.
var leaseLimit = headgate.PerSecond(100)

// leaseLoad is requests a second of the whole fleet, for five seconds each: most of the time well inside the limit, once above it, once none.
var leaseLoad = []float64{30, 60, 80, 20, 120, 60, 0, 90, 40, 80, 10, 60}

const (
	leasePhase = 5 * time.Second
	wellInside = 80 // requests a second
)

// leaseShares are how the load is spread over the replicas, in turns.
var leaseShares = [][]float64{{1. / 3, 1. / 3, 1. / 3}, {0.6, 0.3, 0.1}, {0.1, 0.8, 0.1}}

// A counted store counts the calls of the one inside.
type counted struct {
	headgate.Store
	calls *atomic.Int64
}

func (c counted) Take(ctx context.Context, first headgate.Charge, more ...headgate.Charge) (headgate.Decision, error) {
	c.calls.Add(1)
	return c.Store.Take(ctx, first, more...)
}

func (c counted) Refund(ctx context.Context, first headgate.Charge, more ...headgate.Charge) error {
	c.calls.Add(1)
	return c.Store.Refund(ctx, first, more...)
}

// A leaseRun is one run of the fleet.
type leaseRun struct {
	replicas []*lease.Store
	calls    atomic.Int64

	mu     sync.Mutex
	asked  int64
	grants []time.Time // the instants of the grants by the clock of Redis
}

// BenchmarkLeases has three replicas lease 100/s of one key from a Redis for 60 s under a load that changes, as arrivals at random. It
// reports how many tokens the worst interval has beyond Burst + Count*(d+L)/Period, which must be 0; beyond that without the L; the calls of
// Redis and how many times fewer they are than requests, in all and in the phases that are well inside the limit; and what was stranded. Run it
// with -benchtime 1x.
func BenchmarkLeases(b *testing.B) {
	for _, lifetime := range []time.Duration{time.Second, 2 * time.Second, 5 * time.Second} {
		b.Run(lifetime.String(), func(b *testing.B) {
			for range b.N {
				runLeases(b, lifetime)
			}
		})
	}
}

func runLeases(b *testing.B, lifetime time.Duration) {
	server := redistest.Start(b)
	r := &leaseRun{}
	for range 3 {
		r.replicas = append(r.replicas, r.replica(b, server, lifetime))
	}
	var inside, insideCalls int64
	for i, rate := range leaseLoad {
		asked, calls := r.asked, r.calls.Load()
		r.phase(b, rate, leaseShares[i%len(leaseShares)], uint64(i))
		if rate <= wellInside {
			inside, insideCalls = inside+r.asked-asked, insideCalls+r.calls.Load()-calls
		}
	}
	var sum lease.Stats
	for _, replica := range r.replicas {
		if err := replica.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
		s := replica.Stats()
		sum.Leased, sum.Spent, sum.GivenBack, sum.Stranded = sum.Leased+s.Leased, sum.Spent+s.Spent, sum.GivenBack+s.GivenBack, sum.Stranded+s.Stranded
	}
	over := overLease(r.grants, lifetime)
	b.ReportMetric(float64(over), "over-bound")
	b.ReportMetric(float64(overLease(r.grants, 0)), "over-bound-without-L")
	b.ReportMetric(float64(r.asked), "requests")
	b.ReportMetric(float64(len(r.grants)), "allowed")
	b.ReportMetric(float64(r.calls.Load()), "redis-calls")
	b.ReportMetric(float64(r.asked)/float64(r.calls.Load()), "x-fewer")
	b.ReportMetric(float64(inside)/float64(max(1, insideCalls)), "x-fewer-inside")
	b.ReportMetric(float64(sum.Leased), "leased")
	b.ReportMetric(float64(sum.Stranded), "stranded")
	b.ReportMetric(float64(sum.GivenBack), "given-back")
	if over > 0 {
		b.Errorf("%d tokens over the bound", over)
	}
}

func (r *leaseRun) replica(b *testing.B, server *redistest.Server, lifetime time.Duration) *lease.Store {
	store, err := redisstore.New(server.Client(), redisstore.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	s, err := lease.New(counted{store, &r.calls}, lease.Config{Lifetime: lifetime, Timeout: time.Second})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// phase has requests arrive for a while, each replica its share.
func (r *leaseRun) phase(b *testing.B, rate float64, shares []float64, seed uint64) {
	var wg sync.WaitGroup
	end := time.Now().Add(leasePhase)
	for i, replica := range r.replicas {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			for due := time.Now(); rate > 0; {
				due = due.Add(time.Duration(random.ExpFloat64() * float64(time.Second) / (rate * shares[i])))
				if !due.Before(end) {
					break
				}
				time.Sleep(time.Until(due))
				wg.Go(func() { r.ask(b, replica) })
			}
			time.Sleep(time.Until(end))
		})
	}
	wg.Wait()
}

func (r *leaseRun) ask(b *testing.B, replica *lease.Store) {
	d, err := replica.Take(context.Background(), headgate.Charge{Key: "k", Cost: 1, Limit: leaseLimit})
	if err != nil {
		b.Error(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	if d.Allowed {
		r.grants = append(r.grants, d.At)
	}
}

// overLease returns by how many tokens the worst interval exceeds Burst + Count*(d+late)/Period.
func overLease(grants []time.Time, late time.Duration) int64 {
	slices.SortFunc(grants, time.Time.Compare)
	period, worst, least := leaseLimit.Period.Microseconds(), int64(0), int64(math.MaxInt64)
	for i, at := range grants {
		allowed := leaseLimit.Count * at.Sub(grants[0]).Microseconds()
		least = min(least, int64(i)*period-allowed)
		excess := int64(i+1)*period - allowed - least - leaseLimit.Capacity()*period - leaseLimit.Count*late.Microseconds()
		worst = max(worst, (excess+period-1)/period)
	}
	return worst
}
