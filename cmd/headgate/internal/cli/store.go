package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/admin"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/policy"
	"github.com/headgate/headgate/denial"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// dialTimeout bounds a connection attempt. Decisions do not wait for it longer than their own time-out.
const dialTimeout = 2 * time.Second

// openStore returns the store of c, the client it is on, nil for one in memory, and what closes both. It asks nothing of Redis, which need
// not be up.
func openStore(c *config.Redis, log *slog.Logger) (headgate.Store, redis.UniversalClient, func() error, error) {
	if c == nil {
		m, err := headgate.NewMemory(headgate.MemoryConfig{})
		if err != nil {
			return nil, nil, nil, err
		}
		return m, nil, m.Close, nil
	}
	o, err := redisOptions(c)
	if err != nil {
		return nil, nil, nil, err
	}
	redis.SetLogger(redisLog{log})
	client := redis.NewUniversalClient(o)
	store, err := redisstore.New(client, redisstore.Config{Prefix: c.Prefix, HashTag: policy.HashTag})
	if err != nil {
		return nil, nil, nil, errors.Join(err, client.Close())
	}
	return store, client, func() error { return errors.Join(store.Close(), client.Close()) }, nil
}

// leaveTimeout bounds taking this gateway off the list of those that are alive.
const leaveTimeout = time.Second

// join puts this gateway on the list of those that are alive and share the store, until the returned function takes it off.
func join(client redis.UniversalClient, c *config.Redis, log *slog.Logger) (*redisstore.Membership, func() error, error) {
	m, err := redisstore.NewMembership(client, redisstore.MembershipConfig{Prefix: c.Prefix})
	if err != nil {
		return nil, nil, err
	}
	return m, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
		defer cancel()
		if err := m.Close(ctx); err != nil { // the others find out by themselves, and shutting down is no failure for it
			log.Debug("could not leave the list of gateways", slog.Any("error", err))
		}
		return nil
	}, nil
}

func redisOptions(c *config.Redis) (*redis.UniversalOptions, error) {
	u := c.URL
	o := &redis.UniversalOptions{
		Addrs: u.Addrs, MasterName: u.Master, IsClusterMode: u.Mode == config.Cluster, DB: u.DB, Username: u.User, Password: u.Password,
		SentinelUsername: c.SentinelUser, SentinelPassword: c.SentinelPassword,
		DialTimeout: dialTimeout, DialerRetries: 1, ReadTimeout: dialTimeout, WriteTimeout: dialTimeout,
		ContextTimeoutEnabled: true,            // a decision's time-out ends its commands
		ConnMaxIdleTime:       2 * time.Second, // a peer that went without a word leaves connections that look well
		// The server's notices of maintenance are of no use to commands of milliseconds, and asking for them delays every connection.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if u.TLS {
		var err error
		if o.TLSConfig, err = redisTLS(c.TLS); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// redisTLS says whom connections believe, and what they show.
func redisTLS(t config.RedisTLS) (*tls.Config, error) {
	out := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, wrongConfig("store.redis.tls.ca: %v", err)
		}
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(pem) {
			return nil, wrongConfig("store.redis.tls.ca: %s holds no certificate in PEM", t.CA)
		}
	}
	if t.Pair.Cert != "" {
		pair, err := tls.LoadX509KeyPair(t.Pair.Cert, t.Pair.Key)
		if err != nil {
			return nil, wrongConfig("store.redis.tls: %v", err)
		}
		out.Certificates = []tls.Certificate{pair}
	}
	return out, nil
}

// guarded puts one guard around the store for all who share it, so that what one of them finds out about it the others know. A store in
// memory needs none.
func guarded(store headgate.Store, c *config.Redis, log *slog.Logger, also headgate.BreakerObserver) (headgate.Store, error) {
	if c == nil {
		return store, nil
	}
	b := &breakerLog{log: log}
	return headgate.NewGuard(store, headgate.GuardConfig{Timeout: c.Timeout, OnChange: func(from, to headgate.BreakerState) {
		b.changed(from, to)
		also.ObserveBreaker(from, to)
	}})
}

// cachingDenials puts a denial cache around a guarded store: outside of its guard, so that it answers while the store does not, and what it
// answers is no sign of life of the store.
func cachingDenials(store headgate.Store, c *config.DenialCache) (*denial.Store, error) {
	return denial.New(store, denial.Config{MaxStaleness: c.MaxStaleness, MaxKeys: c.MaxKeys})
}

// A breakerLog says when decisions stop coming from the store, and when they do again: at most a line a second each.
type breakerLog struct {
	log              *slog.Logger
	opened, answered atomic.Int64 // Unix seconds of the last line
}

func (b *breakerLog) changed(from, to headgate.BreakerState) {
	now := time.Now().Unix()
	switch {
	case from == headgate.BreakerClosed && b.opened.Swap(now) != now:
		b.log.Warn("the store is not asked any more: on_store_error answers")
	case to == headgate.BreakerClosed && b.answered.Swap(now) != now:
		b.log.Info("the store answers: it decides again")
	}
}

// storeCheck charges a counter of its own, which also lets a breaker find out that the store is back where no request does. It is not a look: a
// replica and a full server answer those, and decide nothing.
func storeCheck(store headgate.Store) admin.Check {
	charge := headgate.Charge{Key: "readyz", Cost: 1, Limit: headgate.Limit{Name: "readyz", Count: 1_000_000, Period: time.Second}}
	return func(ctx context.Context) string {
		if _, err := store.Take(ctx, charge); err != nil {
			return "on_store_error answers: " + strings.TrimPrefix(err.Error(), "headgate: ")
		}
		return ""
	}
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
