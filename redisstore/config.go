package redisstore

import (
	"fmt"
	"strings"
	"time"

	"github.com/headgate/headgate"
)

// Defaults of [Config].
const (
	DefaultPrefix        = "headgate:"
	DefaultShards        = 16
	DefaultSweepInterval = time.Minute
)

// maxShards bounds Config.Shards.
const maxShards = 1024

// Config configures a [Store]. It is copied; the zero value is good.
type Config struct {
	// Prefix begins every key of this store, so that several can share a Redis. "" = DefaultPrefix. It must not hold a brace, which
	// would change the keys' hash slots. Stores share budgets exactly if their Redis and Prefix are the same.
	Prefix string
	// Shards is the number of hash slots over which keys are spread: of use on a Cluster, where it bounds how many nodes share the
	// work. 0 = DefaultShards; 1 to 1024. It is part of how state lies in Redis: stores that share a Prefix must agree, and one that
	// does not agree with what is recorded there fails with an error that matches [ErrLayout].
	Shards int
	// HashTag returns what decides to which shard a key belongs; "" stands for the whole key. nil = the whole key. Keys of one tag lie
	// in one hash slot, so that a request that charges several of them is one atomic step on a Cluster too. It must be a pure
	// function, the same in every store that shares a Prefix, and is called by many at once.
	HashTag func(key string) string
	// SweepInterval is how often this store looks for hashes whose time is over and frees them in the background; it does so beside a
	// Take, so an idle store does not sweep. 0 = DefaultSweepInterval, negative = never: then the keys' TTL frees them, and Redis
	// stands still meanwhile if they are large.
	SweepInterval time.Duration
}

// complete validates the configuration and fills in defaults.
func (c Config) complete() (Config, error) {
	if c.Prefix == "" {
		c.Prefix = DefaultPrefix
	}
	if strings.ContainsAny(c.Prefix, "{}") {
		return c, fmt.Errorf("%w: Prefix %q holds a brace, which would change the keys' hash slots", headgate.ErrInvalidConfig, c.Prefix)
	}
	if c.Shards == 0 {
		c.Shards = DefaultShards
	}
	if c.Shards < 1 || c.Shards > maxShards {
		return c, fmt.Errorf("%w: Shards %d, want 1 to %d", headgate.ErrInvalidConfig, c.Shards, maxShards)
	}
	if c.SweepInterval == 0 {
		c.SweepInterval = DefaultSweepInterval
	}
	return c, nil
}
