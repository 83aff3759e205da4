package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore"
)

// TestMain lets this binary be the several processes of a test.
func TestMain(m *testing.M) {
	if work := os.Getenv(childEnv); work != "" {
		os.Exit(child(work))
	}
	os.Exit(m.Run())
}

// A clock is a time that several stores share and a test sets.
type clock struct{ micros atomic.Int64 }

func newClock() *clock {
	c := new(clock)
	c.set(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	return c
}

func (c *clock) now() time.Time          { return time.UnixMicro(c.micros.Load()) }
func (c *clock) set(t time.Time)         { c.micros.Store(t.UnixMicro()) }
func (c *clock) advance(d time.Duration) { c.micros.Add(d.Microseconds()) }

// open returns a store that ends with the test. Then every key of the server is found to have a TTL.
func open(t testing.TB, client redis.UniversalClient, cfg redisstore.Config) *redisstore.Store {
	t.Helper()
	store, err := redisstore.New(client, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
		requireTTLs(t, client)
	})
	return store
}

// openAt is open for a store whose time is that of c. It sweeps only when it is told to.
func openAt(t testing.TB, client redis.UniversalClient, prefix string, c *clock) *redisstore.Store {
	t.Helper()
	store := open(t, client, redisstore.Config{Prefix: prefix, SweepInterval: -1})
	store.SetClock(c.now)
	return store
}

// requireTTLs fails the test for every key, on any master, that has no TTL.
func requireTTLs(t testing.TB, client redis.UniversalClient) {
	t.Helper()
	err := eachMaster(client, func(ctx context.Context, c *redis.Client) error {
		keys, err := scan(ctx, c)
		for _, key := range keys {
			ttl, err := c.PTTL(ctx, key).Result()
			if err != nil {
				return err
			}
			if ttl == -1 {
				t.Errorf("key %q has no TTL", key)
			}
		}
		return err
	})
	if err != nil {
		t.Errorf("look at the TTL of all keys: %v", err)
	}
}

// eachMaster calls do for each server that holds keys.
func eachMaster(client redis.UniversalClient, do func(ctx context.Context, c *redis.Client) error) error {
	ctx := context.Background()
	switch c := client.(type) {
	case *redis.ClusterClient:
		return c.ForEachMaster(ctx, do)
	case *redis.Client:
		return do(ctx, c)
	}
	return fmt.Errorf("unexpected client %T", client)
}

func scan(ctx context.Context, c *redis.Client) ([]string, error) {
	var keys []string
	for it := c.Scan(ctx, 0, "*", 1000).Iterator(); ; {
		if !it.Next(ctx) {
			return keys, it.Err()
		}
		keys = append(keys, it.Val())
	}
}

// must returns a context that is long enough for whatever should work, and ends with the test.
func must(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// take takes and fails the test for an error.
func take(t testing.TB, store headgate.Store, first headgate.Charge, more ...headgate.Charge) headgate.Decision {
	t.Helper()
	d, err := store.Take(must(t), first, more...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// left returns the tokens that c has left, and changes nothing.
func left(t testing.TB, store headgate.Store, c headgate.Charge) int64 {
	t.Helper()
	c.Cost = 0
	return take(t, store, c).Remaining
}

// An outcome counts what takes came to.
type outcome struct{ granted, denied, failed int }

// spend makes n takes of the charges at once, from the stores in turn, and returns what they came to, and their errors.
func spend(ctx context.Context, n int, stores []*redisstore.Store, first headgate.Charge, more ...headgate.Charge) (outcome, error) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var sum outcome
	var errs []error
	begin := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-begin
			d, err := stores[i%len(stores)].Take(ctx, first, more...)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				sum.failed++
				errs = append(errs, err)
			case d.Allowed:
				sum.granted++
			default:
				sum.denied++
			}
		})
	}
	close(begin)
	wg.Wait()
	return sum, errors.Join(errs...)
}

// mustSpend is spend where nothing may fail. It returns how many were granted.
func mustSpend(t testing.TB, n int, stores []*redisstore.Store, first headgate.Charge, more ...headgate.Charge) int {
	t.Helper()
	sum, err := spend(must(t), n, stores, first, more...)
	if err != nil {
		t.Fatalf("%d of %d takes failed: %v", sum.failed, n, err)
	}
	return sum.granted
}

// await calls done until it returns true.
func await(t testing.TB, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("still waiting: %s", what)
		}
	}
}

// beside runs do again and again in a goroutine of its own, at least once, until the returned function is called.
func beside(do func()) (stop func()) {
	end, ended, once := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		do()
		close(once)
		for {
			select {
			case <-end:
				return
			default:
				do()
			}
		}
	}()
	return func() {
		<-once
		close(end)
		<-ended
	}
}

var algorithms = []headgate.Algorithm{
	headgate.TokenBucket, headgate.FixedWindow, headgate.AlignedWindow, headgate.SlidingWindow, headgate.SlidingLog,
}

// hundred is a limit of capacity 100 of which nothing comes back while a test runs.
func hundred(a headgate.Algorithm) headgate.Limit {
	return headgate.Limit{Algorithm: a, Count: 100, Period: headgate.MaxPeriod}
}
