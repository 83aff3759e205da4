package lease_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/oracle"
	"github.com/headgate/headgate/lease"
)

// A fleet is a few replicas that lease one counter of one Memory, and what became of it. It lives in a bubble.
type fleet struct {
	t        *testing.T
	random   *rand.Rand
	limit    headgate.Limit
	lifetime time.Duration
	shared   *journal
	replicas []*lease.Store

	mu     sync.Mutex
	spends []grant
}

// A grant is tokens that somebody got at an instant.
type grant struct {
	at   time.Time
	n    int64
	back int64     // of a grant of the store: given back later
	ends time.Time // of a grant of the store: when it is as if never used
}

// A journal is a Memory some way off that keeps what it granted and what was given back. At times an answer is lost.
type journal struct {
	headgate.Store
	mu     sync.Mutex
	random *rand.Rand
	far    time.Duration
	grants []grant
}

func (j *journal) way() time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	return time.Duration(j.random.Int64N(int64(j.far) + 1)).Truncate(time.Microsecond)
}

func (j *journal) Take(ctx context.Context, first headgate.Charge, more ...headgate.Charge) (headgate.Decision, error) {
	time.Sleep(j.way())
	d, err := j.Store.Take(ctx, first, more...)
	back := j.way()
	j.mu.Lock()
	lost := j.random.IntN(100) == 0
	if err == nil && d.Allowed && first.Cost > 0 {
		j.grants = append(j.grants, grant{at: d.At, n: first.Cost, ends: d.At.Add(d.ResetAfter)})
	}
	j.mu.Unlock()
	time.Sleep(back)
	if lost {
		return headgate.Decision{}, &headgate.StoreError{Op: "take", Err: context.DeadlineExceeded}
	}
	return d, err
}

// Refund takes no longer than the time-out of a lease, since nothing that is given back comes later.
func (j *journal) Refund(ctx context.Context, first headgate.Charge, more ...headgate.Charge) error {
	at, _ := headgate.TakenAt(ctx)
	time.Sleep(j.way())
	j.mu.Lock()
	defer j.mu.Unlock()
	i := slices.IndexFunc(j.grants, func(g grant) bool { return g.at.Equal(at) && g.n-g.back >= first.Cost })
	if i < 0 {
		panic(fmt.Sprintf("%d given back of what was not granted at %v", first.Cost, at))
	}
	j.grants[i].back += first.Cost
	return j.Store.Refund(ctx, first, more...)
}

// choose makes up a limit with enough for blocks, and little enough to run out: of a bucket that is soon full again or hardly ever.
func (f *fleet) choose(a headgate.Algorithm) {
	f.limit = headgate.Limit{Algorithm: a, Count: 50 + f.random.Int64N(400), Period: time.Second}
	switch f.random.IntN(3) {
	case 0:
		f.limit.Period = time.Duration(300+f.random.Int64N(3000)) * ms
	case 1:
		f.limit.Period = time.Duration(10+f.random.Int64N(50)) * time.Second
	}
	if a == headgate.TokenBucket && f.random.IntN(2) == 0 {
		f.limit.Burst = 30 + f.random.Int64N(2*f.limit.Count)
	}
	f.lifetime = time.Duration(50+f.random.Int64N(1000)) * ms
}

// play runs one history and returns it.
func play(t *testing.T, seed uint64, a headgate.Algorithm) *fleet {
	f := &fleet{t: t, random: rand.New(rand.NewPCG(seed, 7))}
	f.choose(a)
	f.start(seed)
	for range 8 {
		f.phase()
	}
	f.end()
	return f
}

func (f *fleet) start(seed uint64) {
	far := time.Duration(f.random.Int64N(int64(10 * ms)))
	f.shared = &journal{Store: newMemory(f.t), random: rand.New(rand.NewPCG(seed, 8)), far: far}
	for range 3 {
		f.replicas = append(f.replicas, newStore(f.t, f.shared, lease.Config{Lifetime: f.lifetime}))
	}
}

func (f *fleet) end() {
	for i, r := range f.replicas {
		if err := r.Close(context.Background()); err != nil {
			f.t.Error(err)
		}
		if s := r.Stats(); s.Held != 0 || s.Leased+s.Refunded != s.Spent+s.GivenBack+s.Stranded {
			f.t.Errorf("replica %d: %+v does not add up", i, s)
		}
	}
}

// phase is a time of steady demand, then one in which little is asked, so that leases grow old, and then all at once.
func (f *fleet) phase() {
	tokens := 1 + f.random.Int64N(f.limit.Capacity()/5) // of each replica in a lifetime
	f.all(time.Duration(f.random.Int64N(int64(2*f.lifetime))), f.lifetime/time.Duration(tokens))
	f.all(time.Duration(f.random.Int64N(int64(f.lifetime))), f.lifetime/8)
	if f.random.IntN(2) == 0 {
		f.all(0, 0)
	}
	if f.random.IntN(2) == 0 { // one asks for all that there is, while the others give back what they hold
		everyone := f.replicas
		f.replicas = everyone[:1]
		f.all(f.lifetime, f.lifetime/time.Duration(f.limit.Capacity()))
		f.replicas = everyone
	}
	time.Sleep(time.Duration(f.random.Int64N(int64(2 * f.lifetime)))) // nobody asks: what is left is given back
	if f.random.IntN(4) == 0 {
		time.Sleep(f.limit.Period)
	}
}

// all has each replica ask for so long; with no interval it asks until it is denied.
func (f *fleet) all(long, every time.Duration) {
	var wg sync.WaitGroup
	until := time.Now().Add(long)
	for _, r := range f.replicas {
		cost := int64(1)
		if f.random.IntN(4) == 0 {
			cost = 1 + f.random.Int64N(3)
		}
		wg.Go(func() {
			for {
				if d := f.ask(r, cost); every == 0 && !d.Allowed || every > 0 && !time.Now().Before(until) {
					return
				}
				time.Sleep(every)
			}
		})
	}
	wg.Wait()
}

// ask notes when tokens were spent: those of a lease now, those of the store at its instant.
func (f *fleet) ask(r *lease.Store, cost int64) headgate.Decision {
	d, err := r.Take(context.Background(), headgate.Charge{Key: "k", Cost: cost, Limit: f.limit})
	if err != nil || !d.Allowed {
		return headgate.Decision{}
	}
	at := d.At
	if d.Source == headgate.FromLease {
		at = time.Now()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.spends = append(f.spends, grant{at: at, n: cost})
	return d
}

// over returns by how many tokens, at most, the spends of any interval d are more than Burst + Count*(d+late)/Period, rounded down.
//
// With S the sum of all spends up to an instant t, S*Period - Count*t rises over the interval by what is spent in it less what the rate allows,
// so the worst interval begins where that was the least.
func (f *fleet) over(late time.Duration) int64 {
	slices.SortFunc(f.spends, func(a, b grant) int { return a.at.Compare(b.at) })
	period, sum, worst := f.limit.Period.Microseconds(), int64(0), int64(0)
	least := int64(math.MaxInt64)
	for _, s := range f.spends {
		// a lease has the clock of its process, in nanoseconds: d in whole microseconds is rounded up at the interval's end
		since := func(round time.Duration) int64 { return int64((s.at.Sub(f.spends[0].at) + round) / time.Microsecond) }
		least = min(least, sum*period-f.limit.Count*since(0))
		sum += s.n
		excess := sum*period - f.limit.Count*since(time.Microsecond-1) - least
		excess -= f.limit.Capacity()*period + f.limit.Count*late.Microseconds()
		worst = max(worst, (excess+period-1)/period)
	}
	return worst
}

// overWindow returns the same of windows: by how much the spends of any window are more than Count.
func (f *fleet) overWindow() int64 {
	worst, sum, end := int64(0), int64(0), time.Time{}
	windows := slices.Clone(f.shared.grants)
	slices.SortFunc(windows, func(a, b grant) int { return cmp.Or(a.at.Compare(b.at), a.ends.Compare(b.ends)) })
	slices.SortFunc(f.spends, func(a, b grant) int { return a.at.Compare(b.at) })
	for _, s := range f.spends {
		if !s.at.Before(end) {
			sum = 0
			if f.limit.Algorithm == headgate.FixedWindow {
				i := slices.IndexFunc(windows, func(w grant) bool { return s.at.Before(w.ends) })
				end = windows[i].ends
			} else {
				p := f.limit.Period.Microseconds()
				end = time.UnixMicro((s.at.UnixMicro()/p + 1) * p)
			}
		}
		sum += s.n
		worst = max(worst, sum-f.limit.Count)
	}
	return worst
}

// TestBound: over random histories of three replicas, no interval has more than the bound, to the token.
func TestBound(t *testing.T) {
	saved := int64(0)
	for _, a := range leasable {
		for seed := range uint64(25) {
			bubble(t, func(t *testing.T) {
				f := play(t, seed, a)
				over := f.overWindow
				if a == headgate.TokenBucket {
					over = func() int64 { return f.over(f.lifetime) }
				}
				if n := over(); n > 0 {
					t.Errorf("seed %d: %v with leases of %v: %d more than the bound", seed, f.limit, f.lifetime, n)
				}
				for _, r := range f.replicas {
					saved += r.Stats().Saved()
				}
			})
		}
	}
	if saved < 1000 {
		t.Errorf("%d calls saved: the histories do not lease", saved)
	}
}

// TestBoundIsTight: replicas that let their leases grow as old as can be, and then all spend at once, come so near to the bound that it would
// not hold with half of the lifetime. So a lease that lasted twice as long would be seen to break it.
func TestBoundIsTight(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := &fleet{t: t, random: rand.New(rand.NewPCG(1, 2)), limit: headgate.PerSecond(100), lifetime: time.Second}
		f.start(0)
		for range 50 {
			f.all(time.Duration(f.random.Int64N(int64(f.lifetime))), f.lifetime/30)
			f.all(f.lifetime*9/10, f.lifetime*6/25)
			f.all(0, 0)
			time.Sleep(2 * f.lifetime)
		}
		f.end()
		if n, half := f.over(f.lifetime), f.over(f.lifetime/2); n > 0 || half == 0 {
			t.Errorf("%d over the bound, and %d over that of half the lifetime; want none and some", n, half)
		}
	})
}

// TestGivenBackAsIfNeverTaken: what the store granted less what was given back could have been granted by a bucket that never saw those
// tokens. So what is given back widens no bound, however often it goes around.
func TestGivenBackAsIfNeverTaken(t *testing.T) {
	for _, a := range leasable {
		back := int64(0)
		for seed := range uint64(15) {
			bubble(t, func(t *testing.T) {
				f := play(t, seed, a)
				model := oracle.New()
				for _, g := range f.shared.grants {
					c := headgate.Charge{Key: "k", Cost: g.n - g.back, Limit: f.limit}
					if d := model.Take(g.at, headgate.Decision{}, c); !d.Allowed {
						t.Fatalf("%v, seed %d: %d tokens at %v would be denied without those that were given back", f.limit, seed, c.Cost, g.at)
					}
					back += g.back
				}
			})
		}
		if back == 0 {
			t.Errorf("%v: nothing was given back", a)
		}
	}
}
