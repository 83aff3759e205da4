package redisstore_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore"
	"github.com/headgate/headgate/redisstore/redistest"
)

// A swallower dials connections that, once armed, lose the reply to a script: it is read off the wire, so the server has executed the
// script, and then the connection is closed.
type swallower struct{ armed atomic.Bool }

func (s *swallower) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &lossy{Conn: conn, net: s}, nil
}

type lossy struct {
	net.Conn
	net  *swallower
	lose atomic.Bool
}

func (c *lossy) Write(p []byte) (int, error) {
	if c.net.armed.Load() && (bytes.Contains(p, []byte("evalsha")) || bytes.Contains(p, []byte("\r\neval\r\n"))) {
		c.lose.Store(true)
	}
	return c.Conn.Write(p)
}

func (c *lossy) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err == nil && c.lose.Load() {
		_ = c.Conn.Close()
		return 0, io.EOF
	}
	return n, err
}

// scriptCalls returns how many scripts the server has executed.
func scriptCalls(t *testing.T, server *redistest.Server) int64 {
	t.Helper()
	info, _ := server.Do("INFO", "commandstats").(string)
	sum := int64(0)
	for line := range strings.Lines(info) {
		for _, name := range []string{"cmdstat_evalsha:calls=", "cmdstat_eval:calls="} {
			if rest, ok := strings.CutPrefix(line, name); ok {
				count, _, _ := strings.Cut(rest, ",")
				n, err := strconv.ParseInt(count, 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				sum += n
			}
		}
	}
	return sum
}

// requireOnce loses the reply to a take, and to a refund: each fails, and was executed once.
func requireOnce(t *testing.T, lost *swallower, client redis.UniversalClient, calls func() int64) {
	t.Helper()
	store := open(t, client, redisstore.Config{Prefix: "once:"})
	for _, a := range algorithms {
		c := headgate.Charge{Key: "k", Cost: 10, Limit: hundred(a)}
		take(t, store, c)
		before := calls()
		lost.armed.Store(true)
		if _, err := store.Take(must(t), c); !errors.Is(err, headgate.ErrStore) {
			t.Errorf("%v: got %v, want ErrStore", a, err)
		}
		if err := store.Refund(must(t), c); !errors.Is(err, headgate.ErrStore) {
			t.Errorf("%v: got %v, want ErrStore", a, err)
		}
		if _, err := store.Take(must(t), c); !errors.Is(err, headgate.ErrStore) {
			t.Errorf("%v: got %v, want ErrStore", a, err)
		}
		lost.armed.Store(false)
		if n := calls() - before; n != 3 {
			t.Errorf("%v: three requests, whose replies were lost, were executed %d times", a, n)
		}
		if got := left(t, store, c); got != 80 {
			t.Errorf("%v: %d left, want 80", a, got)
		}
	}
}

// TestLostReply has the client retry three times what may be retried. A take may not.
func TestLostReply(t *testing.T) {
	server := redistest.Start(t)
	for _, honours := range []bool{true, false} {
		server.Do("FLUSHALL")
		var lost swallower
		client := server.Client(func(o *redis.Options) {
			o.Dialer, o.MaxRetries, o.ContextTimeoutEnabled = lost.dial, 3, honours
		})
		requireOnce(t, &lost, client, func() int64 { return scriptCalls(t, server) })
	}
}

// TestConnectionsKilled kills all connections again and again while takes are under way: what was granted was counted, and nothing twice.
func TestConnectionsKilled(t *testing.T) {
	server := redistest.Start(t)
	limit := headgate.Limit{Count: 1_000_000, Period: headgate.MaxPeriod}
	for _, a := range []headgate.Algorithm{headgate.TokenBucket, headgate.SlidingWindow} {
		limit.Algorithm = a
		client := server.Client(func(o *redis.Options) { o.MaxRetries = 3 })
		store := open(t, client, redisstore.Config{})
		c := headgate.Charge{Key: "k", Cost: 1, Limit: limit}
		stop := beside(func() { server.Do("CLIENT", "KILL", "TYPE", "normal") })
		const sent = 300
		sum, _ := spend(must(t), sent, []*redisstore.Store{store}, c)
		stop()
		var used int64
		await(t, "for a connection", func() bool {
			d, err := store.Take(must(t), headgate.Charge{Key: c.Key, Limit: c.Limit})
			used = limit.Count - d.Remaining
			return err == nil
		})
		t.Logf("%d granted, %d failed, %d counted", sum.granted, sum.failed, used)
		if used < int64(sum.granted) || used > sent || used > int64(sum.granted+sum.failed) {
			t.Errorf("%v: %d granted and %d failed, but %d are counted", a, sum.granted, sum.failed, used)
		}
	}
}

// A recorder keeps the arguments of each command.
type recorder struct {
	callCounter
	mu       sync.Mutex
	commands [][]any
}

func (r *recorder) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		r.mu.Lock()
		r.commands = append(r.commands, cmd.Args())
		r.mu.Unlock()
		return next(ctx, cmd)
	}
}

// TestUnknownScript lets the server forget its scripts: a take is sent by digest, then once by source, with the same arguments.
func TestUnknownScript(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client()
	seen := new(recorder)
	client.AddHook(seen)
	store := open(t, client, redisstore.Config{})
	c := headgate.Charge{Key: "k", Cost: 1, Limit: hundred(headgate.TokenBucket)}
	take(t, store, c)
	server.Do("SCRIPT", "FLUSH")
	seen.commands = nil
	if d := take(t, store, c); d.Remaining != 98 {
		t.Errorf("%d left, want 98", d.Remaining)
	}
	if len(seen.commands) != 2 || seen.commands[0][0] != "evalsha" || seen.commands[1][0] != "eval" {
		t.Fatalf("%d commands, want EVALSHA and EVAL", len(seen.commands))
	}
	first, second := seen.commands[0][2:], seen.commands[1][2:]
	if len(first) != len(second) {
		t.Fatalf("%d arguments, then %d", len(first), len(second))
	}
	for i := range first {
		if toString(first[i]) != toString(second[i]) {
			t.Errorf("argument %d is %q, then %q", i, first[i], second[i])
		}
	}
	seen.commands = nil
	take(t, store, c)
	if len(seen.commands) != 1 {
		t.Errorf("%d commands once the script is known, want one", len(seen.commands))
	}
}

func toString(arg any) string {
	switch v := arg.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	case int:
		return strconv.Itoa(v)
	}
	return ""
}
