package lease

import (
	"fmt"
	"time"

	"github.com/headgate/headgate"
)

// Bounds and defaults of [Config].
const (
	DefaultLifetime = time.Second
	MinLifetime     = 10 * time.Millisecond
	MaxLifetime     = time.Hour
	DefaultMaxKeys  = 1 << 16
)

// Config configures a [Store]. It is copied; the zero value is good.
type Config struct {
	// Lifetime is the L of the bound: a token is spent less than this after the store granted it. It is also the time for which
	// blocks are sized, so a longer one asks the store less often. 0 = DefaultLifetime; otherwise MinLifetime to MaxLifetime, in whole
	// microseconds. Processes that share a limit have the bound of the longest among theirs.
	Lifetime time.Duration
	// Leases says which charges may be decided by leases; the others go to the store as they are. nil = all. It is called for each
	// charge, by many at once, and must be quick. Charges under an algorithm that [Supports] refuses are never leased.
	Leases func(headgate.Charge) bool
	// MaxKeys bounds the counters for which tokens are held or demand is measured. When there is no room, the one among a few that was
	// asked for the longest ago gives way, and its tokens are given back. 0 = DefaultMaxKeys, negative is invalid.
	MaxKeys int
	// Timeout bounds each call that takes a block or gives tokens back; a [headgate.Guard] has its own besides. The callers that wait
	// for a block also stop waiting when their context ends. 0 = headgate.DefaultTimeout, negative is invalid.
	Timeout time.Duration
}

// Supports says whether limits of the algorithm can be leased: all but SlidingLog.
func Supports(a headgate.Algorithm) bool { return a < headgate.SlidingLog }

// complete returns cfg with its defaults, or an error that matches [headgate.ErrInvalidConfig].
func (cfg Config) complete() (Config, error) {
	if cfg.Lifetime == 0 {
		cfg.Lifetime = DefaultLifetime
	}
	if cfg.MaxKeys == 0 {
		cfg.MaxKeys = DefaultMaxKeys
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = headgate.DefaultTimeout
	}
	switch {
	case cfg.Lifetime < MinLifetime || cfg.Lifetime > MaxLifetime || cfg.Lifetime%time.Microsecond != 0:
		return cfg, fmt.Errorf("%w: lease of %v, want %v to %v in whole microseconds", headgate.ErrInvalidConfig, cfg.Lifetime, MinLifetime, MaxLifetime)
	case cfg.MaxKeys < 0:
		return cfg, fmt.Errorf("%w: MaxKeys %d, want 0 (= %d) or more", headgate.ErrInvalidConfig, cfg.MaxKeys, DefaultMaxKeys)
	case cfg.Timeout < 0:
		return cfg, fmt.Errorf("%w: time-out %v, want 0 (= %v) or more", headgate.ErrInvalidConfig, cfg.Timeout, headgate.DefaultTimeout)
	}
	return cfg, nil
}
