package redisstore

import (
	"context"
	"crypto/sha1"
	_ "embed" // for the scripts
	"encoding/hex"
	"errors"
	"fmt"
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

// eval runs a script by its digest and, where the server does not know it, by its source: a server that answers NOSCRIPT has executed
// nothing. It waits out TRYAGAIN, which a Cluster answers, executing nothing, while it moves the keys.
func (s *Store) eval(ctx context.Context, script script, keys []string, args []any) (any, error) {
	for pause := time.Millisecond; ; pause = min(2*pause, 16*time.Millisecond) {
		v, err := s.send(ctx, "evalsha", script.digest, keys, args)
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			v, err = s.send(ctx, "eval", script.source, keys, args)
		}
		switch {
		case err == nil:
			return v, nil
		case redis.HasErrorPrefix(err, "TRYAGAIN"):
			if sleep(ctx, pause) == nil {
				continue
			}
		case redis.HasErrorPrefix(err, "CROSSSLOT") && !s.bySlot.Swap(true):
			return nil, errCrossSlot
		case redis.HasErrorPrefix(err, "HEADGATE"):
			return nil, layoutError(s.layout.prefix, strings.TrimPrefix(err.Error(), "HEADGATE "), len(s.layout.tags))
		}
		return nil, err
	}
}

// send sends one command, and waits no longer than ctx lets it.
func (s *Store) send(ctx context.Context, command, script string, keys []string, args []any) (any, error) {
	all := make([]any, 0, 3+len(keys)+len(args))
	all = append(all, command, script, len(keys))
	for _, k := range keys {
		all = append(all, k)
	}
	cmd := once{redis.NewCmd(ctx, append(all, args...)...)}
	cmd.SetFirstKeyPos(3)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.honoursContext {
		return answer(cmd, s.client.Process(ctx, cmd))
	}
	// The client looks at its own time-outs alone, which are seconds. The command goes on without us when ctx ends; how many may do
	// so at a time is bounded.
	select {
	case s.senders <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	done := make(chan error, 1)
	go func() {
		done <- s.client.Process(ctx, cmd)
		<-s.senders
	}()
	select {
	case err := <-done:
		return answer(cmd, err)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
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
