package redisstore_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/oracle"
	"github.com/headgate/headgate/redisstore"
	"github.com/headgate/headgate/redisstore/redistest"
)

// limitsOf returns a limit of each algorithm whose state matters for as long as the generation of the class, or for as long as a valid
// limit can have it matter.
func limitsOf(class int) []headgate.Limit {
	g := redisstore.Generations()[class]
	whole := min(g, headgate.MaxPeriod)
	return []headgate.Limit{
		{Algorithm: headgate.TokenBucket, Count: 2, Period: g / 10, Burst: 20},
		{Algorithm: headgate.FixedWindow, Count: 10, Period: whole},
		{Algorithm: headgate.AlignedWindow, Count: 10, Period: whole},
		{Algorithm: headgate.SlidingWindow, Count: 10, Period: min(g/2, headgate.MaxPeriod)},
		{Algorithm: headgate.SlidingLog, Count: 10, Period: whole},
	}
}

func TestClassOfLimits(t *testing.T) {
	for class, g := range redisstore.Generations() {
		for _, limit := range limitsOf(class) {
			if err := limit.Validate(); err != nil {
				t.Fatal(err)
			}
			if got := redisstore.ClassOf(limit); got != class {
				t.Errorf("%v is of class %d, want %d, whose generation is %v", limit, got, class, g)
			}
		}
	}
}

// A walk has several stores take from one key of each limit at once, at instant after instant, and holds them to the naive model.
type walk struct {
	t       *testing.T
	clock   *clock
	stores  []*redisstore.Store
	model   *oracle.Model
	charges []headgate.Charge
	still   sync.RWMutex // held to read while a request with the time of the clock is under way
}

func newWalk(t *testing.T, server *redistest.Server, prefix string, class int) *walk {
	w := &walk{t: t, clock: newClock(), model: oracle.New()}
	for range 3 {
		w.stores = append(w.stores, openAt(t, server.Client(), prefix, w.clock))
	}
	for _, limit := range limitsOf(class) {
		w.charges = append(w.charges, headgate.Charge{Key: "walker", Cost: 1, Limit: limit})
	}
	return w
}

// spend takes n times at once under each limit, and fails the test if not just as many are granted as should be.
func (w *walk) spend(n int) {
	w.t.Helper()
	now := w.clock.now()
	for _, c := range w.charges {
		want := 0
		for range n {
			if w.model.Take(now, headgate.Decision{}, c).Allowed {
				want++
			}
		}
		if got := mustSpend(w.t, n, w.stores, c); got != want {
			w.t.Fatalf("at %v: %d of %d granted under %v, want %d", now.UTC(), got, n, c.Limit, want)
		}
	}
}

// to moves the clock. A key whose time is over is reset before a step back, as the store may or may not remember it.
func (w *walk) to(now time.Time) {
	w.t.Helper()
	for _, c := range w.charges {
		if now.Before(w.clock.now()) && w.model.Over(w.clock.now(), c) {
			w.model.Reset(c)
			if err := w.stores[0].Reset(must(w.t), c); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	w.still.Lock()
	defer w.still.Unlock()
	w.clock.set(now)
}

// sweep sweeps once. The time of the tests comes with the request: one that the clock overtook would bring an earlier time back.
func (w *walk) sweep() {
	w.still.RLock()
	defer w.still.RUnlock()
	if err := w.stores[0].Sweep(must(w.t)); err != nil {
		w.t.Error(err)
	}
}

// TestEdges walks over the edges of the generations of each class, forth in small steps and back by less than, about and much more than a
// generation, while several stores take and one of them sweeps all the time: no key forgets, and nothing is counted twice.
func TestEdges(t *testing.T) {
	server := redistest.Start(t)
	for class, g := range redisstore.Generations() {
		t.Run(g.String(), func(t *testing.T) {
			w := newWalk(t, server, fmt.Sprint("edges", class, ":"), class)
			defer beside(w.sweep)()
			edge := time.UnixMicro((w.clock.now().UnixMicro()/g.Microseconds() + 2) * g.Microseconds())
			for i := range 3 {
				at := edge.Add(time.Duration(i) * g)
				for _, d := range []time.Duration{-g / 2, -g / 100, -time.Microsecond, 0, time.Microsecond, g / 100} {
					w.to(at.Add(d))
					w.spend(3)
				}
			}
			random := rand.New(rand.NewPCG(uint64(class), 5))
			steps := []time.Duration{
				time.Microsecond, g / 10, g / 3, g - time.Microsecond, g, g + time.Microsecond, 2 * g,
				-time.Microsecond, -g / 10, -g + time.Microsecond, -g, -2 * g, -3 * g, -7 * g, -time.Hour, -72 * time.Hour,
			}
			for range 40 {
				to := w.clock.now().Add(steps[random.IntN(len(steps))].Truncate(time.Microsecond))
				if to.Year() < 1990 { // the longest generation is of eight years, and time begins in 1970
					to = to.Add(3 * g)
				}
				w.to(to)
				w.spend(3)
			}
		})
	}
}

// TestClockStepsBackFar steps back by hours, days and years: the key has what it had, the label of its hashes is brought back near to the
// clock with the next write, and in time the hashes go.
func TestClockStepsBackFar(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client()
	for i, step := range []time.Duration{11 * time.Second, time.Hour, 26 * time.Hour, 45 * 24 * time.Hour, 10 * headgate.MaxPeriod} {
		t.Run(step.String(), func(t *testing.T) {
			now := newClock()
			store := openAt(t, client, fmt.Sprint("far", i, ":"), now)
			c := headgate.Charge{Key: "k", Cost: 7, Limit: headgate.Limit{Algorithm: headgate.FixedWindow, Count: 10, Period: 10 * time.Second}}
			take(t, store, c)
			now.advance(-step)
			if got := left(t, store, c); got != 3 {
				t.Fatalf("%d left after the step, want 3", got)
			}
			c.Cost = 1
			if d := take(t, store, c); !d.Allowed || d.Remaining != 2 || d.ResetAfter != 10*time.Second {
				t.Fatalf("after the step got %+v, want 2 left, for no longer than the window takes", d)
			}
			g := redisstore.Generations()[0]
			requireLabels(t, client, store.Hashes(c, 0), now.now(), g)
			now.advance(10 * time.Second)
			if got := left(t, store, c); got != 10 {
				t.Fatalf("%d left after the window, want 10", got)
			}
			now.advance(5 * g)
			if err := store.Sweep(must(t)); err != nil {
				t.Fatal(err)
			}
			hashes := store.Hashes(c, 0)
			if n := client.Exists(must(t), hashes[0], hashes[1]).Val(); n != 0 {
				t.Fatalf("%d hashes are left five generations later, want none", n)
			}
		})
	}
}

// requireLabels fails the test unless the newest label of the pair is of the generation of now or at most two ahead of it, and both
// keys end within what a generation that far ahead has them last.
func requireLabels(t *testing.T, client *redis.Client, hashes [2]string, now time.Time, g time.Duration) {
	t.Helper()
	present, newest := now.UnixMicro()/g.Microseconds(), int64(-1)
	for _, h := range hashes {
		var part rune
		var generation, shards int64
		label := client.HGet(must(t), h, "#").Val()
		if _, err := fmt.Sscanf(label, "%c%d/%d", &part, &generation, &shards); err != nil {
			t.Fatalf("label %q: %v", label, err)
		}
		newest = max(newest, generation)
		if ttl := client.PTTL(must(t), h).Val(); ttl <= 0 || ttl > 4*g+max(g, 10*time.Minute) {
			t.Errorf("hash lasts for %v more, want at most four generations and some", ttl)
		}
	}
	if newest < present || newest > present+2 {
		t.Errorf("newest label is of generation %d, want %d or at most two more", newest, present)
	}
}

// TestIdleKey leaves a key alone for as long as its state matters, while others keep its hashes rolling: to the last microsecond it is
// remembered, and then it is as if new, which its limit says too.
func TestIdleKey(t *testing.T) {
	client := redistest.Start(t).Client()
	for class, g := range redisstore.Generations() {
		for _, limit := range limitsOf(class) {
			t.Run(fmt.Sprint(g, "/", limit.Algorithm), func(t *testing.T) {
				now, model := newClock(), oracle.New()
				store := openAt(t, client, fmt.Sprint("idle", class, limit.Algorithm, ":"), now)
				now.set(time.UnixMicro((now.now().UnixMicro()/g.Microseconds()+1)*g.Microseconds() - 1)) // the last instant of a generation
				c := headgate.Charge{Key: "idle", Cost: limit.Capacity(), Limit: limit}
				d := take(t, store, c)
				model.Take(now.now(), d, c)
				end := now.now().Add(d.ResetAfter)
				other := headgate.Charge{Key: "busy", Cost: 1, Limit: limit}
				for _, at := range []time.Time{end.Add(-d.ResetAfter / 2).Truncate(time.Microsecond), end.Add(-time.Microsecond), end, end.Add(3 * g)} {
					now.set(at)
					take(t, store, other)
					look := c
					look.Cost = 0
					want := model.Take(now.now(), d, look)
					got := take(t, store, look)
					if got.Remaining != want.Remaining || got.ResetAfter != want.ResetAfter {
						t.Fatalf("at %v: %d left, new in %v, want %d and %v", at.UTC(), got.Remaining, got.ResetAfter, want.Remaining, want.ResetAfter)
					}
					if isNew := got.ResetAfter == 0; isNew == at.Before(end) {
						t.Fatalf("at %v the key is as if new: %v, and should be from %v on", at.UTC(), isNew, end.UTC())
					}
				}
			})
		}
	}
}

// TestPausedClient sends a request that was built long before: it is decided by the present generation, and does not write into a dead one.
func TestPausedClient(t *testing.T) {
	client := redistest.Start(t).Client()
	for _, pause := range []int{1, 2, 3, 1000, 1001} { // generations
		t.Run(fmt.Sprint(pause), func(t *testing.T) {
			now := newClock()
			g := redisstore.Generations()[0]
			store := openAt(t, client, fmt.Sprint("paused", pause, ":"), now)
			c := headgate.Charge{Key: "k", Cost: 1, Limit: headgate.Limit{Algorithm: headgate.FixedWindow, Count: 3, Period: g}}
			take(t, store, c)
			first, second, third := store.Prepare(c), store.Prepare(c), store.Prepare(c)
			now.advance(time.Duration(pause) * g)
			take(t, store, c) // somebody else, who was not paused
			for i, send := range []func() (bool, error){
				func() (bool, error) { return first(must(t)) },
				func() (bool, error) { return second(must(t)) },
				func() (bool, error) { return third(must(t)) },
			} {
				granted, err := send()
				if err != nil {
					t.Fatal(err)
				}
				if granted != (i < 2) {
					t.Fatalf("late request %d granted: %v, want the first two of three", i+1, granted)
				}
			}
			if d := take(t, store, c); d.Allowed || d.RetryAfter != g {
				t.Fatalf("got %+v, want denied for the whole window that is under way", d)
			}
			requireLabels(t, client, store.Hashes(c, 0), now.now(), g)
		})
	}
}

// TestRefundAndResetReachEitherGeneration changes a state that lies in the hash of the generation before, whose successor has been begun
// or not.
func TestRefundAndResetReachEitherGeneration(t *testing.T) {
	client := redistest.Start(t).Client()
	for _, limit := range limitsOf(0) {
		for _, age := range []int{0, 1} {
			for _, begun := range []bool{false, true} {
				t.Run(fmt.Sprint(limit.Algorithm, "/age ", age, "/begun ", begun), func(t *testing.T) {
					now := newClock()
					g := redisstore.Generations()[0]
					store := openAt(t, client, fmt.Sprint("reach", limit.Algorithm, age, begun, ":"), now)
					now.set(time.UnixMicro((now.now().UnixMicro()/g.Microseconds()+1)*g.Microseconds() - 1000))
					if limit.Algorithm == headgate.AlignedWindow || limit.Algorithm == headgate.SlidingWindow {
						limit.Period = 7 * g / 20 // so that the window does not end just there
					}
					c := headgate.Charge{Key: "k", Cost: limit.Capacity(), Limit: limit}
					if at := take(t, store, c).At; !at.Equal(now.now()) {
						t.Fatalf("decided at %v, want %v", at, now.now())
					}
					now.advance(time.Duration(age) * time.Millisecond) // over the edge
					if begun {
						take(t, store, headgate.Charge{Key: "other", Cost: 1, Limit: limit})
					}
					before := left(t, store, c)
					c.Cost = 5
					if err := store.Refund(must(t), c); err != nil {
						t.Fatal(err)
					}
					if got := left(t, store, c); got != before+5 {
						t.Fatalf("%d left after giving back 5, want %d", got, before+5)
					}
					if err := store.Reset(must(t), c); err != nil {
						t.Fatal(err)
					}
					if got := left(t, store, c); got != limit.Capacity() {
						t.Fatalf("%d left after a reset, want %d", got, limit.Capacity())
					}
				})
			}
		}
	}
}

// TestForeignLabelAhead has somebody's hand label a hash with a generation to come, and leave an older state there. A call that finds out about it only
// because another of its limits has to be searched for writes where the label says that the generation goes on: what it charges counts.
func TestForeignLabelAhead(t *testing.T) {
	client := redistest.Start(t).Client()
	now := newClock()
	store := open(t, client, redisstore.Config{Prefix: "ahead:", Shards: 1, SweepInterval: -1})
	store.SetClock(now.now)
	c := headgate.Charge{Key: "k", Cost: 1, Limit: headgate.Limit{Count: 3, Period: 10 * time.Second}}
	class := redisstore.ClassOf(c.Limit)
	generation := now.now().UnixMicro() / redisstore.Generations()[class].Microseconds()
	hashes := store.Hashes(c, class)
	here, there := hashes[generation%2], hashes[(generation+1)%2]
	take(t, store, c)
	older := client.HGet(must(t), here, redisstore.Field(c)).Val()
	take(t, store, c)
	if err := client.HSet(must(t), there, "#", fmt.Sprint("c", generation+1, "/1"), redisstore.Field(c), older).Err(); err != nil {
		t.Fatal(err)
	}
	named := headgate.Charge{Key: "new", Cost: 1, Limit: headgate.Limit{Name: "n", Count: 10, Period: 24 * time.Hour}}
	if d, err := store.Take(must(t), c, named); err != nil || !d.Allowed {
		t.Fatalf("the third: %+v, %v", d, err)
	}
	if d := take(t, store, c); d.Allowed {
		t.Errorf("a fourth of 3 was granted: %+v", d)
	}
}
