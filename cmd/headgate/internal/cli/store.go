package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// dialTimeout bounds a connection attempt. Decisions do not wait for it longer than their own time-out.
const dialTimeout = 2 * time.Second

// openStore returns the store of c and what closes it. It asks nothing of Redis, which need not be up.
func openStore(c *config.Redis, log *slog.Logger) (headgate.Store, func() error, error) {
	if c == nil {
		m, err := headgate.NewMemory(headgate.MemoryConfig{})
		if err != nil {
			return nil, nil, err
		}
		return m, m.Close, nil
	}
	redis.SetLogger(redisLog{log})
	client := redis.NewUniversalClient(redisOptions(c))
	store, err := redisstore.New(client, redisstore.Config{Prefix: c.Prefix})
	if err != nil {
		return nil, nil, errors.Join(err, client.Close())
	}
	return store, func() error { return errors.Join(store.Close(), client.Close()) }, nil
}

func redisOptions(c *config.Redis) *redis.UniversalOptions {
	u := c.URL
	o := &redis.UniversalOptions{
		Addrs: u.Addrs, MasterName: u.Master, IsClusterMode: u.Mode == config.Cluster, DB: u.DB, Username: u.User, Password: u.Password,
		DialTimeout: dialTimeout, DialerRetries: 1, ReadTimeout: dialTimeout, WriteTimeout: dialTimeout,
		ContextTimeoutEnabled: true, // a decision's time-out ends its commands
		// The server's notices of maintenance are of no use to commands of milliseconds, and asking for them delays every connection.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if u.TLS {
		o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return o
}

// redisLog keeps what the client says of every failed connection for those who look into it: an outage has its one line a second
// from the limiter.
type redisLog struct{ log *slog.Logger }

// Printf implements the client's logger.
func (l redisLog) Printf(ctx context.Context, format string, args ...any) {
	if l.log.Enabled(ctx, slog.LevelDebug) {
		l.log.DebugContext(ctx, "redis client", slog.String("says", fmt.Sprintf(format, args...)))
	}
}
