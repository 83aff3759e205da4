package redisstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// once is a command that the client never sends twice: after a time-out or a lost connection it is not known whether the first was
// executed. Redirections of a Cluster are followed: who answered with one did not execute the command.
type once struct{ *redis.Cmd }

// NoRetry implements [redis.Cmder].
func (once) NoRetry() bool { return true }

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
	honours, calls := settings(client)
	return conn{client, honours, cluster, calls, make(chan struct{}, maxSenders)}
}

// settings returns what a store needs to know of its client: whether it gives up when the context ends, which go-redis does only on
// request; and how many calls may be under way to a server at once. That is as many as there are connections for, one less where they are
// not very few, for others: who finds none waits for one, and in the end gets an error. Of a client of another kind it knows neither.
func settings(client redis.UniversalClient) (honoursContext bool, calls int) {
	active := 0
	switch c := client.(type) {
	case *redis.Client:
		honoursContext, calls, active = c.Options().ContextTimeoutEnabled, c.Options().PoolSize, c.Options().MaxActiveConns
	case *redis.ClusterClient:
		honoursContext, calls, active = c.Options().ContextTimeoutEnabled, c.Options().PoolSize, c.Options().MaxActiveConns
	case *redis.Ring:
		honoursContext, calls, active = c.Options().ContextTimeoutEnabled, c.Options().PoolSize, c.Options().MaxActiveConns
	default:
		return false, mostCalls
	}
	if active > 0 {
		calls = min(calls, active)
	}
	if calls > fewCalls {
		calls--
	}
	return honoursContext, calls
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

// sendAll sends commands by digest to a Cluster, in as few packets as there are nodes. An error that is not that of one command is that of
// all; then the commands may be in use still.
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

// inline says whether a command may be sent in the caller's own time, which spares it a change of goroutines, the better part of a lone
// call's time. The client gives up at the deadline of ctx then, but does not see that it is cancelled. A client that sees neither would
// keep the caller.
func (c conn) inline(ctx context.Context) bool { return c.honoursContext || ctx.Done() == nil }

// maxSenders bounds the commands under way with a client that does not honour the context.
const maxSenders = 512

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
