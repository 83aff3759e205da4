package denial

import (
	"fmt"
	"time"

	"github.com/headgate/headgate"
)

// Defaults and bounds of a [Config].
const (
	DefaultMaxStaleness = 100 * time.Millisecond // the MaxStaleness of a Config that does not set it
	DefaultMaxKeys      = 8192                   // the MaxKeys of a Config that does not set it
	LongestStaleness    = 24 * time.Hour         // largest MaxStaleness
	MostKeys            = 1 << 20                // largest MaxKeys
)

// Config configures a [Store]. It is copied; the zero value is good.
type Config struct {
	// MaxStaleness is how long a denial is believed at most, and so how long a refund, a reset or another limit that was made elsewhere can
	// go unseen. A key that is denied for longer costs one call of the store in that time. 0 = DefaultMaxStaleness; negative, and more than
	// LongestStaleness, is invalid.
	MaxStaleness time.Duration
	// MaxKeys bounds the denials that are remembered, one for each key and limit. It is rounded up to a power of two, and the table
	// for so many is made at once. Where there is no room, the denial that ends first makes it: its key asks the store. 0 = DefaultMaxKeys;
	// negative, and more than MostKeys, is invalid.
	MaxKeys int
}

// complete returns cfg with its defaults filled in, or an error that matches [headgate.ErrInvalidConfig].
func (cfg Config) complete() (Config, error) {
	if cfg.MaxStaleness < 0 || cfg.MaxStaleness > LongestStaleness {
		return cfg, fmt.Errorf("%w: MaxStaleness %v, want 0 (= %v) to %v", headgate.ErrInvalidConfig, cfg.MaxStaleness, DefaultMaxStaleness, LongestStaleness)
	}
	if cfg.MaxKeys < 0 || cfg.MaxKeys > MostKeys {
		return cfg, fmt.Errorf("%w: MaxKeys %d, want 0 (= %d) to %d", headgate.ErrInvalidConfig, cfg.MaxKeys, DefaultMaxKeys, MostKeys)
	}
	if cfg.MaxStaleness == 0 {
		cfg.MaxStaleness = DefaultMaxStaleness
	}
	if cfg.MaxKeys == 0 {
		cfg.MaxKeys = DefaultMaxKeys
	}
	return cfg, nil
}
