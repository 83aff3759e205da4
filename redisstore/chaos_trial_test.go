package redisstore_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore"
	"github.com/headgate/headgate/redisstore/redistest"
)

// A witness observes a limiter and counts what it comes to.
type witness struct {
	mu      sync.Mutex
	granted map[headgate.Source]int64
	decided map[headgate.Source]int
	unknown int64 // tokens asked of the store, which then failed: it may have charged them
	causes  map[string]int
	longest time.Duration
}

func newWitness() *witness {
	return &witness{granted: map[headgate.Source]int64{}, decided: map[headgate.Source]int{}, causes: map[string]int{}}
}

func (w *witness) Observe(_ context.Context, o headgate.Observation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.decided[o.Decision.Source]++
	if o.Decision.Allowed {
		w.granted[o.Decision.Source] += o.Cost
	}
	w.longest = max(w.longest, o.Elapsed)
	var network *net.OpError
	switch {
	case o.Err == nil:
		return
	case errors.Is(o.Err, headgate.ErrBreakerOpen):
		w.causes["breaker"]++
		return
	case errors.As(o.Err, &network) && network.Op == "dial": // nothing was sent
		w.causes["no connection"]++
		return
	case errors.Is(o.Err, context.DeadlineExceeded):
		w.causes["deadline"]++
	default:
		w.causes[o.Err.Error()]++
	}
	w.unknown += o.Cost
}

// only returns how many decisions there were, and whether all were from source.
func (w *witness) only(source headgate.Source) (int, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	sum := 0
	for _, n := range w.decided {
		sum += n
	}
	return sum, w.decided[source] == sum
}

// modes are the failure modes, and who decides under each while the store cannot.
var modes = map[headgate.FailureMode]headgate.Source{
	headgate.FailClosed: headgate.FromClosed, headgate.FailOpen: headgate.FromOpen, headgate.FailLocal: headgate.FromLocal,
}

// trialReplicas is the number of replicas that the limiters of a trial believe in.
const trialReplicas = 4

// A trial is a limiter of each failure mode behind one Guard, on a client that meets the faults. All spend one budget, of which nothing
// comes back.
type trial struct {
	guard    *headgate.Guard
	limiters map[headgate.FailureMode]*headgate.Limiter
	seen     map[headgate.FailureMode]*witness
	charge   headgate.Charge
	store    *redisstore.Store // behind the guard
	direct   *redisstore.Store // past the faults
}

func newTrial(t *testing.T, server *redistest.Server, client redis.UniversalClient, timeout time.Duration, capacity int64) *trial {
	t.Helper()
	store, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	guard, err := headgate.NewGuard(store, headgate.GuardConfig{Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	tr := &trial{
		guard: guard, store: store, limiters: map[headgate.FailureMode]*headgate.Limiter{}, seen: map[headgate.FailureMode]*witness{},
		charge: headgate.Charge{Key: "k", Cost: 1, Limit: headgate.Limit{Count: capacity, Period: headgate.MaxPeriod}},
		direct: open(t, server.Client(), redisstore.Config{}),
	}
	for mode := range modes {
		seen := newWitness()
		tr.limiters[mode], err = headgate.New(guard, []headgate.Limit{tr.charge.Limit}, headgate.Config{
			OnStoreError: mode, Replicas: func() int { return trialReplicas }, Observer: seen, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		tr.seen[mode] = seen
	}
	return tr
}

// forget begins the counts anew, but for what was granted by the store and in process, or may have been.
func (tr *trial) forget() {
	for _, w := range tr.seen {
		clear(w.decided)
		clear(w.causes)
		w.longest, w.granted[headgate.FromOpen] = 0, 0
	}
}

// warm fills the pool with connections, however long that takes.
func (tr *trial) warm(t *testing.T) {
	t.Helper()
	look := tr.charge
	look.Cost = 0
	mustSpend(t, 50, []*redisstore.Store{tr.store}, look)
}

// offer makes n decisions under each mode, at most width of each at once. The context that it brings is none that ends any.
func (tr *trial) offer(t *testing.T, n, width int) {
	t.Helper()
	ctx := must(t)
	var wg sync.WaitGroup
	for mode, limiter := range tr.limiters {
		for i := range width {
			wg.Go(func() {
				for j := i; j < n; j += width {
					if _, err := limiter.Allow(ctx, tr.charge.Key); err != nil && mode != headgate.FailClosed {
						t.Errorf("%v: %v", mode, err)
					}
				}
			})
		}
	}
	wg.Wait()
	if ctx.Err() != nil {
		t.Error("decisions waited for the caller's deadline, want the guard's")
	}
}

// requireStore fails the test unless every decision since forget was the store's.
func (tr *trial) requireStore(t *testing.T) {
	t.Helper()
	for mode, w := range tr.seen {
		if n, all := w.only(headgate.FromStore); !all || n == 0 {
			t.Errorf("%v: %v of %d decisions are the store's, causes %v", mode, w.decided, n, w.causes)
		}
		t.Logf("%v: %v, longest %v", mode, w.decided, w.longest)
	}
}

// requireFallback fails the test unless every decision since forget was made as the mode says, and for causes that say one of says.
func (tr *trial) requireFallback(t *testing.T, says ...string) {
	t.Helper()
	for mode, source := range modes {
		w := tr.seen[mode]
		n, all := w.only(source)
		if !all || n == 0 {
			t.Errorf("%v: %v, want %v alone", mode, w.decided, source)
		}
		for cause := range w.causes {
			known := cause == "breaker"
			for _, s := range says {
				known = known || strings.Contains(cause, s)
			}
			if !known {
				t.Errorf("%v: the cause of a decision is %q", mode, cause)
			}
		}
		t.Logf("%v: %v, causes %v, longest %v", mode, w.decided, w.causes, w.longest)
	}
	closed, free := tr.seen[headgate.FailClosed], tr.seen[headgate.FailOpen]
	if closed.granted[headgate.FromClosed] != 0 || free.granted[headgate.FromOpen] != int64(free.decided[headgate.FromOpen]) {
		t.Errorf("closed granted %d, and open %d of %d", closed.granted[headgate.FromClosed], free.granted[headgate.FromOpen],
			free.decided[headgate.FromOpen])
	}
	if tr.guard.State() == headgate.BreakerClosed {
		t.Error("the breaker is closed")
	}
}

// requireBound counts. The store has granted no more than it counts, and counts each consume whose outcome is unknown once at most, over
// as many lives of it as there were; in process, one replica's share was granted and no more.
func (tr *trial) requireBound(t *testing.T, lives int64) {
	t.Helper()
	granted, unknown := int64(0), int64(0)
	for _, w := range tr.seen {
		granted, unknown = granted+w.granted[headgate.FromStore], unknown+w.unknown
	}
	capacity := tr.charge.Limit.Count
	used := capacity - left(t, tr.direct, tr.charge)
	t.Logf("the store granted %d of %d, %d are unknown, %d are counted", granted, capacity, unknown, used)
	if granted > lives*capacity || used > granted+unknown || lives == 1 && used < granted {
		t.Errorf("%d of %d granted, %d unknown, %d counted", granted, capacity, unknown, used)
	}
	if local, share := tr.seen[headgate.FailLocal].granted[headgate.FromLocal], capacity/trialReplicas; local > share {
		t.Errorf("%d granted in process, want at most %d", local, share)
	}
}

// awaitStore asks until the store decides again, under every mode, and says how long that took. It consumes nothing.
func (tr *trial) awaitStore(t *testing.T) {
	t.Helper()
	start := time.Now()
	for mode, limiter := range tr.limiters {
		await(t, "for the store to decide again", func() bool {
			d, err := limiter.Peek(must(t), tr.charge.Key)
			if source := modes[mode]; err == nil && d.Source != headgate.FromStore && d.Source != source {
				t.Fatalf("%v: decided by %v", mode, d.Source)
			}
			return err == nil && d.Source == headgate.FromStore
		})
	}
	t.Logf("the store decides again after %v", time.Since(start))
	tr.forget()
}
