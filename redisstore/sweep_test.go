package redisstore_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore"
	"github.com/headgate/headgate/redisstore/redistest"
)

// aWindow is a charge of a window that puts it into the class.
func aWindow(class int) headgate.Charge {
	return headgate.Charge{Key: "k", Cost: 4, Limit: limitsOf(class)[1]}
}

// TestSweepFreesWhatIsOver writes a state of each class, and lets class after class go by: a sweep frees just those hashes.
func TestSweepFreesWhatIsOver(t *testing.T) {
	client := redistest.Start(t).Client()
	now := newClock()
	store := openAt(t, client, "sweep:", now)
	other := openAt(t, client, "other:", now)
	last := len(redisstore.Generations()) - 1 // the years are left
	for class := range last + 1 {
		take(t, store, aWindow(class))
		take(t, other, aWindow(class))
	}
	client.Set(must(t), "sweep:foreign", "x", time.Hour)
	for over, g := range redisstore.Generations()[:last] {
		now.advance(2 * g)
		if err := store.Sweep(must(t)); err != nil {
			t.Fatal(err)
		}
		for class := range last + 1 {
			hashes := store.Hashes(aWindow(class), class)
			if n := client.Exists(must(t), hashes[0], hashes[1]).Val(); (n == 0) != (class <= over) {
				t.Errorf("after %v there are %d hashes of class %d", 2*g, n, class)
			}
		}
	}
	if got := left(t, store, aWindow(last)); got != 6 {
		t.Errorf("%d left of the longest, want 6", got)
	}
	hashes := other.Hashes(aWindow(0), 0)
	if n := client.Exists(must(t), hashes[0], hashes[1], "sweep:foreign").Val(); n != 3 {
		t.Errorf("%d of 3 keys of others are left", n)
	}
}

// TestSweepBringsLabelsBack has the clock step back by a month under hashes that nobody writes to: the next sweep sees to it that they do not
// stay that long, and nothing is lost.
func TestSweepBringsLabelsBack(t *testing.T) {
	client := redistest.Start(t).Client()
	now := newClock()
	store := openAt(t, client, "back:", now)
	c := aWindow(0)
	take(t, store, c)
	const month = 30 * 24 * time.Hour
	now.advance(-month)
	for _, h := range store.Hashes(c, 0) { // as the clock of the server stepped back with the other
		client.PExpire(must(t), h, month)
	}
	if err := store.Sweep(must(t)); err != nil {
		t.Fatal(err)
	}
	requireLabels(t, client, store.Hashes(c, 0), now.now(), redisstore.Generations()[0])
	if got := left(t, store, c); got != 6 {
		t.Errorf("%d left, want 6", got)
	}
}

// TestSweepGoesOnPastForeignKey puts a key of another type where one shard's hash would lie: the sweep says so and frees the rest.
func TestSweepGoesOnPastForeignKey(t *testing.T) {
	client := redistest.Start(t).Client()
	now := newClock()
	store := openAt(t, client, "past:", now)
	var hashes []string
	for i := range 200 {
		c := aWindow(0)
		c.Key = fmt.Sprint(i)
		take(t, store, c)
		pair := store.Hashes(c, 0)
		hashes = append(hashes, pair[:]...)
	}
	foreign := "past:{" + redisstore.ShardTags(redisstore.DefaultShards)[0] + "}s0"
	client.Set(must(t), foreign, "x", time.Hour)
	now.advance(time.Minute)
	if err := store.Sweep(must(t)); !redis.HasErrorPrefix(err, "WRONGTYPE") && (err == nil || !strings.Contains(err.Error(), "WRONGTYPE")) {
		t.Errorf("got %v, want WRONGTYPE", err)
	}
	shard := strings.TrimSuffix(foreign, "s0")
	for _, h := range hashes {
		if n := client.Exists(must(t), h).Val(); n != 0 && !strings.HasPrefix(h, shard) {
			t.Fatalf("hash %q is left", h)
		}
	}
}

// TestTakeSweepsWhenDue has takes alone, and finds what was over gone.
func TestTakeSweepsWhenDue(t *testing.T) {
	client := redistest.Start(t).Client()
	now := newClock()
	store := open(t, client, redisstore.Config{SweepInterval: time.Nanosecond})
	store.SetClock(now.now)
	take(t, store, aWindow(0))
	now.advance(time.Minute)
	hashes := store.Hashes(aWindow(0), 0)
	other := aWindow(0)
	for i := 0; store.ShardOf(other.Key) == store.ShardOf("k"); i++ {
		other.Key = fmt.Sprint(i)
	}
	await(t, "for the sweep", func() bool {
		take(t, store, other)
		return client.Exists(must(t), hashes[0], hashes[1]).Val() == 0
	})
}

// TestNoSweepUnlessDue counts the commands of a store whose sweep is not due.
func TestNoSweepUnlessDue(t *testing.T) {
	server := redistest.Start(t)
	store := open(t, server.Client(), redisstore.Config{SweepInterval: time.Hour})
	calls := new(callCounter)
	client := server.Client()
	client.AddHook(calls)
	quiet := open(t, client, redisstore.Config{SweepInterval: time.Hour})
	take(t, store, aWindow(0))
	take(t, quiet, aWindow(0))
	before := calls.n.Load()
	for range 10 {
		take(t, quiet, aWindow(0))
	}
	if err := quiet.Close(); err != nil { // waits for a sweep, if there were one
		t.Fatal(err)
	}
	if n := calls.n.Load() - before; n != 10 {
		t.Errorf("%d commands for 10 takes, want one each", n)
	}
}

// A callCounter counts the commands of a client.
type callCounter struct{ n atomic.Int64 }

func (c *callCounter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *callCounter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (c *callCounter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.n.Add(1)
		return next(ctx, cmd)
	}
}

// A hanger holds up each command from the time it is armed until its context ends, as a server that hangs would.
type hanger struct {
	armed   atomic.Bool
	hanging chan struct{}
}

func (h *hanger) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *hanger) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *hanger) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !h.armed.Load() {
			return next(ctx, cmd)
		}
		select {
		case h.hanging <- struct{}{}:
		default:
		}
		<-ctx.Done()
		return ctx.Err()
	}
}

// TestCloseEndsSweep closes a store in the middle of a sweep that makes no progress: Close returns, and nothing of the store runs on.
func TestCloseEndsSweep(t *testing.T) {
	client := redistest.Start(t).Client()
	h := &hanger{hanging: make(chan struct{}, 1)}
	client.AddHook(h)
	store, err := redisstore.New(client, redisstore.Config{SweepInterval: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	arm := &armAfterTake{hanger: h}
	client.AddHook(arm)
	take(t, store, aWindow(0))
	<-h.hanging
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if stack := running("redisstore.(*Store)"); stack != "" {
		t.Fatalf("after Close there runs\n%s", stack)
	}
	if _, err := store.Take(must(t), aWindow(0)); err == nil {
		t.Error("a closed store takes")
	}
}

// armAfterTake arms a hanger after the first command that decides.
type armAfterTake struct {
	callCounter
	hanger *hanger
}

func (a *armAfterTake) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if args := cmd.Args(); len(args) > 6 && err == nil { // the record's script has fewer arguments
			a.hanger.armed.Store(true)
		}
		return err
	}
}

// running returns the stack of a goroutine, other than the caller's, in which name occurs; "" if there is none.
func running(name string) string {
	buf := make([]byte, 4<<20)
	stacks := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
	for _, s := range stacks[1:] {
		if strings.Contains(s, name) {
			return s
		}
	}
	return ""
}

// TestIdleStoreLeavesNothing opens and closes a store without use.
func TestIdleStoreLeavesNothing(t *testing.T) {
	client := redistest.Start(t).Client()
	store := open(t, client, redisstore.Config{SweepInterval: time.Nanosecond})
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if n := client.DBSize(must(t)).Val(); n != 0 {
		t.Errorf("%d keys in Redis, want none", n)
	}
	if stack := running("redisstore.(*Store)"); stack != "" {
		t.Errorf("after Close there runs\n%s", stack)
	}
}
