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
