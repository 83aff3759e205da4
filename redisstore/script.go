package redisstore

import (
	"context"
	"crypto/sha1"
	_ "embed" // for the scripts
	"encoding/hex"
	"errors"
	"fmt"
	"os"
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

// decide runs decide.lua.
func (s *Store) decide(ctx context.Context, keys []string, args []any) (any, error) {
	if s.clock != nil { // in tests the script takes the time from its last two arguments
		now := s.clock()
		args = append(args, strconv.FormatInt(now.Unix(), 10), strconv.Itoa(now.Nanosecond()/1000))
	}
	return s.eval(ctx, s.decideScript, keys, args)
}

// eval runs a script and understands the answers that are about this store.
func (s *Store) eval(ctx context.Context, script script, keys []string, args []any) (any, error) {
	v, err := s.conn.eval(ctx, script, keys, args)
	switch {
	case redis.HasErrorPrefix(err, "CROSSSLOT") && !s.bySlot.Swap(true):
		return nil, errCrossSlot
	case redis.HasErrorPrefix(err, "HEADGATE"):
		return nil, layoutError(s.layout.prefix, strings.TrimPrefix(err.Error(), "HEADGATE "), len(s.layout.tags))
	}
	return v, err
}

// A conn sends scripts through a client.
type conn struct {
	client         redis.UniversalClient
	honoursContext bool
	senders        chan struct{} // holds one for each command under way, if the client does not honour the context
}

func newConn(client redis.UniversalClient) conn {
	return conn{client, honoursContext(client), make(chan struct{}, maxSenders)}
}

// eval runs a script by its digest and, where the server does not know it, by its source: a server that answers NOSCRIPT has executed
// nothing. It waits out what a Cluster answers, executing nothing, while it moves the keys: TRYAGAIN, and more redirections
// than the client follows.
func (c conn) eval(ctx context.Context, script script, keys []string, args []any) (any, error) {
	for pause := time.Millisecond; ; pause = min(2*pause, 16*time.Millisecond) {
		v, err := c.send(ctx, "evalsha", script.digest, keys, args)
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			v, err = c.send(ctx, "eval", script.source, keys, args)
		}
		if !c.moving(err) || sleep(ctx, pause) != nil {
			return v, err
		}
	}
}

func (c conn) moving(err error) bool {
	_, follows := c.client.(*redis.ClusterClient)
	return redis.HasErrorPrefix(err, "TRYAGAIN") || follows && (redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK"))
}

// send sends one command, and waits no longer than ctx lets it.
func (c conn) send(ctx context.Context, command, script string, keys []string, args []any) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	all := make([]any, 0, 3+len(keys)+len(args))
	all = append(all, command, script, len(keys))
	for _, k := range keys {
		all = append(all, k)
	}
	cmd := once{redis.NewCmd(ctx, append(all, args...)...)}
	cmd.SetFirstKeyPos(3)
	if c.honoursContext {
		return answer(cmd, overdue(ctx, c.client.Process(ctx, cmd)))
	}
	// The client looks at its own time-outs alone, which are seconds. The command goes on without us when ctx ends; how many may do
	// so at a time is bounded.
	select {
	case c.senders <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	done := make(chan error, 1)
	go func() {
		done <- c.client.Process(ctx, cmd)
		<-c.senders
	}()
	select {
	case err := <-done:
		return answer(cmd, err)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// overdue returns err, which is that of the network when the client gave up at the deadline of ctx, as one that says so.
func overdue(ctx context.Context, err error) error {
	if deadline, ok := ctx.Deadline(); ok && errors.Is(err, os.ErrDeadlineExceeded) && !time.Now().Before(deadline) {
		return fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}
	return err
}

func answer(cmd once, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return cmd.Result()
}

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
