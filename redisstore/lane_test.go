package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore"
	"github.com/headgate/headgate/redisstore/redistest"
)

// TestMillionTakes has 256 callers take 1,000,000 times from 1,000 keys: of each key exactly what its limit holds is granted.
func TestMillionTakes(t *testing.T) {
	t.Run("standalone", func(t *testing.T) {
		server := redistest.Start(t)
		requireMillion(t, open(t, server.Client(), redisstore.Config{}))
	})
	t.Run("cluster", func(t *testing.T) {
		cluster := redistest.StartCluster(t, 3)
		requireMillion(t, open(t, cluster.Client(), redisstore.Config{}))
	})
}

func requireMillion(t *testing.T, store *redisstore.Store) {
	t.Helper()
	const callers, takes, keys, capacity = 256, 1_000_000, 1_000, 700
	ctx := must(t)
	granted := make([]atomic.Int64, keys)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for i := next.Add(1); i <= takes; i = next.Add(1) {
				key := int(i*7919) % keys
				limit := headgate.Limit{Algorithm: headgate.Algorithm(key % 4), Count: capacity, Period: headgate.MaxPeriod}
				d, err := store.Take(ctx, headgate.Charge{Key: fmt.Sprint("key", key), Cost: 1, Limit: limit})
				if err != nil {
					t.Error(err)
					return
				}
				if d.Allowed {
					granted[key].Add(1)
				}
			}
		})
	}
	wg.Wait()
	for key := range granted {
		if got := granted[key].Load(); got != capacity {
			t.Errorf("key %d: %d of %d granted, want %d", key, got, takes/keys, capacity)
		}
	}
}

// TestJoinedTakesAreInSomeOrder has many take from one key at one instant: what each is told is what the takes would be told one after the
// other. So each number of tokens left is told once to one that was granted, and the same wait to all who were denied.
func TestJoinedTakesAreInSomeOrder(t *testing.T) {
	client := redistest.Start(t).Client()
	clock := newClock()
	for _, a := range algorithms {
		store := openAt(t, client, fmt.Sprint("order", a, ":"), clock)
		c := headgate.Charge{Key: "k", Cost: 3, Limit: hundred(a)}
		var mu sync.Mutex
		var granted, denied []headgate.Decision
		var wg sync.WaitGroup
		for range 300 {
			wg.Go(func() {
				d := take(t, store, c)
				mu.Lock()
				defer mu.Unlock()
				if d.Allowed {
					granted = append(granted, d)
				} else {
					denied = append(denied, d)
				}
			})
		}
		wg.Wait()
		slices.SortFunc(granted, func(x, y headgate.Decision) int { return int(y.Remaining - x.Remaining) })
		alone := openAt(t, client, fmt.Sprint("alone", a, ":"), clock)
		for i, d := range granted {
			if want := take(t, alone, c); !same(d, want) {
				t.Fatalf("%v: grant %d is told %+v, want %+v", a, i, d, want)
			}
		}
		want := take(t, alone, c)
		for _, d := range denied {
			if !same(d, want) {
				t.Fatalf("%v: a denied one is told %+v, want %+v", a, d, want)
			}
		}
	}
}

// same compares decisions; they have no States.
func same(a, b headgate.Decision) bool {
	return a.Allowed == b.Allowed && a.Limit == b.Limit && a.Remaining == b.Remaining && a.RetryAfter == b.RetryAfter && a.ResetAfter == b.ResetAfter && a.At.Equal(b.At)
}

// requireLeft fails the test unless c comes to have n tokens left: giving back goes on beside who asked.
func requireLeft(t *testing.T, store headgate.Store, c headgate.Charge, n int64) {
	t.Helper()
	await(t, fmt.Sprint(n, " tokens left"), func() bool { return left(t, store, c) == n })
}

// TestWhoGoesAwayLeavesNothing has callers give up while their takes are queued or under way, behind a server that hangs. When it goes on, what
// was granted to them has been given back.
func TestWhoGoesAwayLeavesNothing(t *testing.T) {
	for _, a := range algorithms {
		t.Run(a.String(), func(t *testing.T) {
			server := redistest.Start(t)
			store := open(t, server.Client(func(o *redis.Options) { o.ReadTimeout = time.Minute }), redisstore.Config{})
			look := open(t, server.Client(), redisstore.Config{})
			c := headgate.Charge{Key: "k", Cost: 1, Limit: hundred(a)}
			take(t, store, c)
			server.Pause()
			stay, leave := make(chan error, 20), make(chan error, 60)
			ctx, cancel := context.WithCancel(context.Background())
			for round := range 2 { // those who come second find calls under way that carry others, and queue
				for i := range (cap(stay) + cap(leave)) / 2 {
					go func() {
						if i%4 == 0 {
							_, err := store.Take(context.Background(), c)
							stay <- err
							return
						}
						_, err := store.Take(ctx, c)
						leave <- err
					}()
				}
				await(t, "all takes on their way", func() bool { return store.OnTheirWay() == (1+round)*(cap(stay)+cap(leave))/2 })
			}
			cancel()
			lost := 0
			if canceled(<-leave) {
				lost++
			}
			server.Resume()
			for range cap(leave) - 1 {
				if canceled(<-leave) {
					lost++
				}
			}
			for range cap(stay) {
				if err := <-stay; err != nil {
					t.Error(err)
				}
			}
			requireLeft(t, look, c, int64(100-1-cap(stay)-(cap(leave)-lost)))
		})
	}
}

// A gate is a hook of a client that holds replies back, once the server has answered, while it is shut.
type gate struct {
	callCounter
	mu   sync.Mutex
	held chan struct{} // nil = open
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held = make(chan struct{})
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.held)
	g.held = nil
}

func (g *gate) wait() {
	g.mu.Lock()
	held := g.held
	g.mu.Unlock()
	if held != nil {
		<-held
	}
}

func (g *gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		g.wait()
		return err
	}
}

// inBackground has a store take c, and returns what tells how that ended.
func inBackground(ctx context.Context, store *redisstore.Store, c headgate.Charge) <-chan error {
	told := make(chan error, 1)
	go func() {
		_, err := store.Take(ctx, c)
		told <- err
	}()
	return told
}

// TestLateGivingBackIsNoGift has a caller go away whose reply comes half a second late. Others took what came in the meantime: with what
// is given back nobody gets more than the bucket holds.
func TestLateGivingBackIsNoGift(t *testing.T) {
	server := redistest.Start(t)
	clock := newClock()
	client := server.Client(func(o *redis.Options) { o.ContextTimeoutEnabled = false }) // or a lone caller would wait for the reply
	slow, other := openAt(t, client, "p:", clock), openAt(t, server.Client(), "p:", clock)
	c := headgate.Charge{Key: "k", Cost: 100, Limit: headgate.Limit{Count: 100, Period: time.Second}}
	take(t, slow, headgate.Charge{Key: "warm", Cost: 1, Limit: c.Limit})
	g := new(gate)
	client.AddHook(g)
	g.shut()
	ctx, cancel := context.WithCancel(context.Background())
	gone := inBackground(ctx, slow, c)
	await(t, "the tokens taken", func() bool { return left(t, other, c) == 0 })
	cancel()
	if err := <-gone; !canceled(err) {
		t.Errorf("got %v, want Canceled", err)
	}
	clock.advance(500 * time.Millisecond)
	half := c
	half.Cost = 50
	if d := take(t, other, half); !d.Allowed || d.Remaining != 0 {
		t.Fatalf("half a period later: %+v, want 50 granted and none left", d)
	}
	g.open()
	requireLeft(t, other, c, 50)
}

// TestLoneCallerGoesAway has a caller be cancelled who is alone. With a client that does not look at the context it is told at once, and what it
// was granted is given back when the reply comes. With one that does, it waits for the reply, and has what it says.
func TestLoneCallerGoesAway(t *testing.T) {
	for _, honours := range []bool{true, false} {
		server := redistest.Start(t)
		client := server.Client(func(o *redis.Options) { o.ContextTimeoutEnabled, o.ReadTimeout = honours, time.Minute })
		store, look := open(t, client, redisstore.Config{}), open(t, server.Client(), redisstore.Config{})
		c := headgate.Charge{Key: "k", Cost: 40, Limit: hundred(headgate.FixedWindow)}
		take(t, store, headgate.Charge{Key: "warm", Cost: 1, Limit: c.Limit})
		g := new(gate)
		client.AddHook(g)
		g.shut()
		ctx, cancel := context.WithCancel(context.Background())
		told := inBackground(ctx, store, c)
		await(t, "the tokens taken", func() bool { return left(t, look, c) == 60 })
		cancel()
		if honours {
			g.open()
			if err := <-told; err != nil {
				t.Errorf("client honours the context: got %v, want the reply", err)
			}
			requireLeft(t, look, c, 60)
			continue
		}
		if err := <-told; !canceled(err) {
			t.Errorf("client does not honour the context: got %v, want Canceled", err)
		}
		g.open()
		requireLeft(t, look, c, 100)
	}
}

func canceled(err error) bool { return errors.Is(err, context.Canceled) }

// TestFailedBatch has a batch fail: each caller is told once, and all the same.
func TestFailedBatch(t *testing.T) {
	server := redistest.Start(t)
	store := open(t, server.Client(), redisstore.Config{})
	c := headgate.Charge{Key: "k", Cost: 1, Limit: hundred(headgate.TokenBucket)}
	take(t, store, c)
	class := redisstore.ClassOf(c.Limit)
	for _, hash := range store.Hashes(c, class) {
		server.Do("DEL", hash)
		server.Do("SET", hash, "foreign", "EX", 60)
	}
	server.Pause()
	errs := make(chan error, 50)
	for range cap(errs) {
		go func() {
			_, err := store.Take(context.Background(), c)
			errs <- err
		}()
	}
	await(t, "all takes on their way", func() bool { return store.OnTheirWay() == cap(errs) })
	server.Resume()
	for range cap(errs) {
		err := <-errs
		requireStoreError(t, err, "WRONGTYPE")
	}
	if n := store.OnTheirWay(); n != 0 {
		t.Errorf("%d requests left", n)
	}
}

// TestQueueOfAHangingServer has many callers come and go while a call hangs: those who are gone do not fill the queue.
func TestQueueOfAHangingServer(t *testing.T) {
	server := redistest.Start(t)
	store := open(t, server.Client(func(o *redis.Options) { o.ReadTimeout = time.Minute }), redisstore.Config{})
	c := headgate.Charge{Key: "k", Cost: 1, Limit: hundred(headgate.TokenBucket)}
	take(t, store, c)
	server.Pause()
	stay := make(chan error, 20)
	for range cap(stay) {
		go func() {
			_, err := store.Take(context.Background(), c)
			stay <- err
		}()
	}
	await(t, "all takes on their way", func() bool { return store.OnTheirWay() == cap(stay) })
	for range 1_000 {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Microsecond)
		if _, err := store.Take(ctx, c); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want DeadlineExceeded", err)
		}
		cancel()
	}
	if n := store.OnTheirWay(); n > 200 {
		t.Errorf("%d requests queued or under way, of %d callers who wait", n, cap(stay))
	}
	server.Resume()
	for range cap(stay) {
		if err := <-stay; err != nil {
			t.Error(err)
		}
	}
	requireLeft(t, store, c, int64(100-1-cap(stay)))
}

// inFlight counts the scripts of a client that are under way, and remembers the most.
type inFlight struct{ now, most atomic.Int64 }

func (f *inFlight) DialHook(next redis.DialHook) redis.DialHook { return next }
func (f *inFlight) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (f *inFlight) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "evalsha" { // what greets the server on a new connection
			return next(ctx, cmd)
		}
		n := f.now.Add(1)
		defer f.now.Add(-1)
		for most := f.most.Load(); n > most && !f.most.CompareAndSwap(most, n); most = f.most.Load() {
		}
		return next(ctx, cmd)
	}
}

// TestFarServerHasMoreCalls: where an answer takes long to arrive, those who come meanwhile do not wait for it, though batches are under way. 8 calls
// there are anywhere, as long as each carries one request.
func TestFarServerHasMoreCalls(t *testing.T) {
	far := startNetwork(t, redistest.Start(t).Addr())
	far.slow(40*time.Millisecond, 1)
	client := redis.NewClient(&redis.Options{Addr: far.addr(), ContextTimeoutEnabled: true, PoolSize: 64})
	t.Cleanup(func() { _ = client.Close() })
	store := open(t, client, redisstore.Config{})
	charge := func(i int) headgate.Charge {
		return headgate.Charge{Key: fmt.Sprint("k", i), Cost: 1, Limit: headgate.PerMinute(100)}
	}
	take(t, store, charge(0))
	var calls inFlight
	client.AddHook(&calls)
	var wg sync.WaitGroup
	arrivals := time.NewTicker(time.Millisecond)
	defer arrivals.Stop()
	for i := range 200 {
		<-arrivals.C
		wg.Go(func() { take(t, store, charge(i)) })
	}
	wg.Wait()
	if most := calls.most.Load(); most <= 8 || most > 16 {
		t.Errorf("%d calls under way at once, want more than 8 and at most 16", most)
	}
}
