package cli

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/load"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

// benchPrefix begins all keys that bench uses in Redis. Each run has a part of it to itself, so that runs do not share counters, and none removes
// those of another.
const benchPrefix = "headgate-bench:"

// A benchTarget is a target with its name, what says whether it answers at all, and what ends it and leaves nothing behind.
type benchTarget struct {
	load.Target
	name  string
	check func(context.Context) (warning string, err error)
	close func() error
}

// memoryTarget has room for all counters that the run can make, so that none is dropped before its time.
func memoryTarget(cfg load.Config) (*benchTarget, error) {
	room := 2 * cfg.KeyCount
	if cfg.Limit.Algorithm == headgate.SlidingLog {
		room += load.MaxRequests // each that is allowed is an entry, for which a Memory reckons less than a counter
	}
	m, err := headgate.NewMemory(headgate.MemoryConfig{MaxKeys: max(room, headgate.DefaultMaxKeys)})
	if err != nil {
		return nil, err
	}
	return &benchTarget{
		Target: load.NewStore(m, *cfg.Limit), name: "memory of this process",
		check: func(context.Context) (string, error) { return "", nil }, close: m.Close,
	}, nil
}

func httpTarget(t *load.HTTP) *benchTarget {
	return &benchTarget{
		Target: t, name: "HTTP at " + t.Addr(), close: t.Close,
		check: func(ctx context.Context) (string, error) {
			if err := t.Check(ctx); err != nil {
				return "", fmt.Errorf("nothing answers at %s: %w; start the gateway, or correct --url", t.Addr(), err)
			}
			return "", nil
		},
	}
}

func redisTarget(u config.RedisURL, cfg load.Config) (*benchTarget, error) {
	random := make([]byte, 6)
	if _, err := rand.Read(random); err != nil {
		return nil, fmt.Errorf("no random bytes: %w", err)
	}
	prefix := benchPrefix + hex.EncodeToString(random) + ":"
	store, client, closeStore, err := openStore(&config.Redis{URL: u, Timeout: cfg.Timeout, Prefix: prefix}, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, usageError("%v", err)
	}
	return &benchTarget{
		Target: load.NewStore(store, *cfg.Limit), name: u.String(),
		check: func(ctx context.Context) (string, error) { return checkRedis(ctx, store, u) },
		close: func() error { return errors.Join(endStore(store), clean(client, prefix), closeStore()) },
	}, nil
}

// endStore ends what a store does in the background, so that it writes no key once they are removed. Its client stays open.
func endStore(store headgate.Store) error {
	if c, ok := store.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// checkRedis takes a token: a replica and a full server answer questions, and decide nothing.
func checkRedis(ctx context.Context, store headgate.Store, u config.RedisURL) (warning string, err error) {
	charge := headgate.Charge{Key: "ready", Cost: 1, Limit: headgate.Limit{Name: "ready", Count: 1, Period: time.Second}}
	if _, err := store.Take(ctx, charge); err != nil {
		return "", fmt.Errorf("%v cannot decide: %w; start it, or correct --redis", u, err)
	}
	if s, ok := store.(interface {
		Server(context.Context) (redisstore.Server, error)
	}); ok {
		if server, err := s.Server(ctx); err == nil && server.Evicts() { // without the right to INFO there is no warning
			return "this Redis drops keys when its memory is full, counters among them: then more is allowed than the limit permits", nil
		}
	}
	return "", nil
}

// cleanTimeout bounds the removal of the keys.
const cleanTimeout = 30 * time.Second

// clean removes the keys of a run. Where it cannot, their TTL does.
func clean(client redis.UniversalClient, prefix string) error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanTimeout)
	defer cancel()
	if err := load.Clean(ctx, client, prefix); err != nil {
		return fmt.Errorf("the keys that begin with %s could not be removed: %w; they expire by themselves", prefix, err)
	}
	return nil
}

// loopback says whether addr is surely on this machine.
func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}
