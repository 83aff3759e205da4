package redisstore

import (
	"context"
	"crypto/sha1"
	_ "embed" // for the scripts
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed script/decide.lua
var decideSource string

//go:embed script/layout.lua
var layoutSource string

// A script is sent by its digest, and by its source to a server that does not know it yet.
type script struct{ source, digest string }

func newScript(source string) script {
	sum := sha1.Sum([]byte(source)) // what EVALSHA calls for; nothing rests on it
	return script{source, hex.EncodeToString(sum[:])}
}

// The modes of the script decide.lua.
const (
	modeDecide = 0
	modeSweep  = 1
	modeReset  = 2 // decide, with resets among the requests
)

// layoutError says that under prefix state lies in recorded shards and not in ours.
func layoutError(prefix, recorded string, ours int) error {
	return fmt.Errorf("%w: prefix %q has %s, this store is configured for %d; set Shards to %s, or use another prefix",
		ErrLayout, prefix, recorded, ours, recorded)
}

// errCrossSlot says that a script was refused, unexecuted, because its keys lie in different hash slots.
var errCrossSlot = errors.New("keys in different hash slots")

// once is a command that the client never sends twice: after a time-out or a lost connection it is not known whether the first was
// executed. Redirections of a Cluster are followed: who answered with one did not execute the command.
type once struct{ *redis.Cmd }

// NoRetry implements [redis.Cmder].
func (once) NoRetry() bool { return true }

// decide runs decide.lua on a batch.
func (s *Store) decide(ctx context.Context, b *batch, mode byte) (any, error) {
	v, err := s.conn.eval(ctx, s.decideScript, s.call(b, mode))
	return v, s.understand(b, err)
}

// call returns the command that has b decided.
func (s *Store) call(b *batch, mode byte) []any {
	call := b.command(mode)
	if s.clock != nil { // in tests the script takes the time from its last two arguments
		now := s.clock()
		call = append(call, strconv.FormatInt(now.Unix(), 10), strconv.Itoa(now.Nanosecond()/1000))
	}
	return call
}

// understand returns what an error that came of b means.
func (s *Store) understand(b *batch, err error) error {
	if redis.HasErrorPrefix(err, "CROSSSLOT") && b.spans() { // a Cluster behind what looks like a single server
		s.bySlot.Store(true)
		return errCrossSlot
	}
	return s.explain(err)
}

// explain puts an answer of the scripts that is about this store into words.
func (s *Store) explain(err error) error {
	if redis.HasErrorPrefix(err, "HEADGATE") {
		return layoutError(s.layout.prefix, strings.TrimPrefix(err.Error(), "HEADGATE "), len(s.layout.tags))
	}
	return err
}

// A conn sends scripts through a client.
type conn struct {
	client         redis.UniversalClient
	honoursContext bool
	cluster        bool
	calls          int           // how many scripts may be under way to a server
	senders        chan struct{} // holds one for each command under way, if the client does not honour the context
}

func newConn(client redis.UniversalClient) conn {
	_, cluster := client.(*redis.ClusterClient)
	return conn{client, honoursContext(client), cluster, callsOf(client), make(chan struct{}, maxSenders)}
}

// callsOf returns how many calls may be under way to a server at once: as many as the client has connections for, and if they are not very few one less,
// for others. Who finds no connection waits for one, and in the end gets an error.
func callsOf(client redis.UniversalClient) int {
	pool, active := 0, 0
	switch c := client.(type) {
	case *redis.Client:
		pool, active = c.Options().PoolSize, c.Options().MaxActiveConns
	case *redis.ClusterClient:
		pool, active = c.Options().PoolSize, c.Options().MaxActiveConns
	case *redis.Ring:
		pool, active = c.Options().PoolSize, c.Options().MaxActiveConns
	default:
		return mostCalls
	}
	if active > 0 {
		pool = min(pool, active)
	}
	if pool > fewCalls {
		pool--
	}
	return pool
}

// newCall returns the call of a script with one key.
func newCall(key string, args ...any) []any {
	return append([]any{nil, nil, 1, key}, args...)
}

// eval runs a script by its digest and, where the server does not know it, by its source: a server that answers NOSCRIPT has executed
// nothing. It waits out what a Cluster answers, executing nothing, while it moves the keys: TRYAGAIN, and more redirections
// than the client follows. call is the command: two places that eval fills, the number of keys, the keys, the arguments. With an error,
// it may be in use still.
func (c conn) eval(ctx context.Context, script script, call []any) (any, error) {
	for pause := time.Millisecond; ; pause = min(2*pause, 16*time.Millisecond) {
		call[0], call[1] = "evalsha", script.digest
		v, err := c.send(ctx, call)
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			call = slices.Clone(call) // the client's hooks may look at the first command still
			call[0], call[1] = "eval", script.source
			v, err = c.send(ctx, call)
		}
		if !c.moving(err) || sleep(ctx, pause) != nil {
			return v, err
		}
	}
}

// unsent says whether err is an answer after which nothing was executed and eval goes on.
func (c conn) unsent(err error) bool { return redis.HasErrorPrefix(err, "NOSCRIPT") || c.moving(err) }

func (c conn) moving(err error) bool {
	return redis.HasErrorPrefix(err, "TRYAGAIN") || c.cluster && (redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK"))
}

// send sends one command, and waits no longer than ctx lets it.
func (c conn) send(ctx context.Context, call []any) (any, error) {
	cmd := newOnce(ctx, call)
	if err := c.process(ctx, func(ctx context.Context) error { return c.client.Process(ctx, cmd) }); err != nil {
		return nil, err
	}
	return cmd.Result()
}

// sendAll sends commands by digest to a Cluster, in as few packets as there are nodes. An error that is not that of one command is that of all; then
// the commands may be in use still.
func (c conn) sendAll(ctx context.Context, script script, calls [][]any) ([]once, error) {
	pipe := c.client.Pipeline()
	cmds := make([]once, len(calls))
	for i, call := range calls {
		call[0], call[1] = "evalsha", script.digest
		cmds[i] = newOnce(ctx, call)
		_ = pipe.Process(ctx, cmds[i]) // it only queues
	}
	err := c.process(ctx, func(ctx context.Context) error {
		_, _ = pipe.Exec(ctx) // each command has its own error
		return nil
	})
	if err != nil {
		return nil, err
	}
	return cmds, nil
}

func newOnce(ctx context.Context, call []any) once {
	cmd := once{redis.NewCmd(ctx, call...)}
	cmd.SetFirstKeyPos(3)
	return cmd
}

// process does what the client is to do, and waits no longer than ctx lets it.
func (c conn) process(ctx context.Context, do func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.honoursContext {
		return overdue(ctx, do(ctx))
	}
	// The client looks at its own time-outs alone, which are seconds. The command goes on without us when ctx ends; how many may do
	// so at a time is bounded.
	select {
	case c.senders <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	done := make(chan error, 1)
	go func() {
		done <- do(ctx)
		<-c.senders
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// overdue returns err, which is that of the network when the client gave up at the deadline of ctx, as one that says so.
func overdue(ctx context.Context, err error) error {
	if deadline, ok := ctx.Deadline(); ok && errors.Is(err, os.ErrDeadlineExceeded) && !time.Now().Before(deadline) {
		return fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}
	return err
}

// inline says whether a command may be sent in the caller's own time, which spares it a change of goroutines, the better part of a lone call's time.
// The client gives up at the deadline of ctx then, but does not see that it is cancelled. A client that sees neither would keep the caller.
func (c conn) inline(ctx context.Context) bool { return c.honoursContext || ctx.Done() == nil }

// maxSenders bounds the commands under way with a client that does not honour the context.
const maxSenders = 512

// honoursContext says whether the client gives up when the context ends, which go-redis does only on request.
func honoursContext(client redis.UniversalClient) bool {
	switch c := client.(type) {
	case *redis.Client:
		return c.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		return c.Options().ContextTimeoutEnabled
	case *redis.Ring:
		return c.Options().ContextTimeoutEnabled
	}
	return false
}

// sleep waits for d, or fails as ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
