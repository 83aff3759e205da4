package redisstore

import (
	"context"
	"crypto/rand"
	_ "embed" // for the script
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
)

//go:embed script/member.lua
var memberSource string

// DefaultMemberTTL is the TTL of a [Membership] that does not set it.
const DefaultMemberTTL = 3 * time.Second

// maxMemberTTL bounds MembershipConfig.TTL.
const maxMemberTTL = time.Hour

// MembershipConfig configures a [Membership]. It is copied; the zero value is good.
type MembershipConfig struct {
	// Prefix begins the key of the list. "" = DefaultPrefix. Replicas count each other exactly if their Redis and Prefix are the same;
	// it must not hold a brace.
	Prefix string
	// ID tells this replica from the others. "" = a random one, which is right unless two processes are to count as one.
	ID string
	// TTL is how long after its last sign of life a replica that crashed still counts. 0 = DefaultMemberTTL; at least a millisecond, at
	// most an hour. All replicas should have the same.
	TTL time.Duration
}

// A Membership is this process's place in the list of live replicas, which is kept in Redis by the server's clock. A sign of life goes
// out three times per TTL; who closes its Membership is gone at once, who crashes after the TTL. While Redis is away the last number known
// stands. Its Replicas is what [headgate.Config.Replicas] wants. Safe for concurrent use.
type Membership struct {
	conn   conn
	key    string
	id     string
	ttl    time.Duration
	script script

	replicas atomic.Int64
	seen     atomic.Int64 // when the number was last found out, Unix nanoseconds of this process's clock; 0 = never
	cancel   context.CancelFunc
	done     chan struct{}
	once     sync.Once
}

// NewMembership joins the list and keeps this replica on it until Close. Redis need not be up: it is tried again three times per TTL. Errors
// match [headgate.ErrInvalidConfig].
func NewMembership(client redis.UniversalClient, cfg MembershipConfig) (*Membership, error) {
	if client == nil {
		return nil, fmt.Errorf("%w: no client, want one such as redis.NewClient makes", headgate.ErrInvalidConfig)
	}
	if cfg.Prefix == "" {
		cfg.Prefix = DefaultPrefix
	}
	if strings.ContainsAny(cfg.Prefix, "{}") {
		return nil, fmt.Errorf("%w: Prefix %q holds a brace, which would change the key's hash slot", headgate.ErrInvalidConfig, cfg.Prefix)
	}
	if cfg.ID == "" {
		cfg.ID = rand.Text()
	}
	if cfg.TTL == 0 {
		cfg.TTL = DefaultMemberTTL
	}
	if cfg.TTL < time.Millisecond || cfg.TTL > maxMemberTTL {
		return nil, fmt.Errorf("%w: TTL %v, want 0 (= %v) or 1ms to %v", headgate.ErrInvalidConfig, cfg.TTL, DefaultMemberTTL, maxMemberTTL)
	}
	ctx, cancel := context.WithCancel(context.Background())
	m := &Membership{
		conn: newConn(client), key: cfg.Prefix + "members", id: cfg.ID, ttl: cfg.TTL, script: newScript(memberSource),
		cancel: cancel, done: make(chan struct{}),
	}
	m.replicas.Store(1)
	go m.live(ctx)
	return m, nil
}

// Replicas returns the number of live replicas, this one included, as last known; at least 1.
func (m *Membership) Replicas() int { return int(m.replicas.Load()) }

// Seen returns when the number of replicas was last found out; the zero time if it never was.
func (m *Membership) Seen() time.Time {
	if n := m.seen.Load(); n != 0 {
		return time.Unix(0, n)
	}
	return time.Time{}
}

// ID returns what this replica is called in the list.
func (m *Membership) ID() string { return m.id }

// Close takes this replica off the list and ends its signs of life. The error is that of Redis or of ctx, when the others will have to find
// out by the TTL. Only the first call does anything.
func (m *Membership) Close(ctx context.Context) (err error) {
	m.once.Do(func() {
		m.cancel()
		<-m.done
		_, err = m.beat(ctx, 0)
	})
	return err
}

// live sends signs of life until ctx ends.
func (m *Membership) live(ctx context.Context) {
	defer close(m.done)
	ticker := time.NewTicker(m.ttl / 3)
	defer ticker.Stop()
	var settled time.Time
	for {
		if n, err := m.beat(ctx, m.ttl); err == nil && n != 0 {
			settled = m.learn(n, settled)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// learn takes note of a number that Redis answered: negative where this replica was not on the list, since Redis has lost it or was away.
// Then the others are about to come back as well, and who crashed meanwhile is found out after the TTL: until settled, which it returns, the
// number does not go down. So an outage that soon follows another is not divided by too few.
func (m *Membership) learn(n int64, settled time.Time) time.Time {
	now := time.Now()
	if n < 0 {
		n, settled = -n, now.Add(m.ttl)
	}
	if now.Before(settled) {
		n = max(n, m.replicas.Load())
	}
	m.replicas.Store(n)
	m.seen.Store(now.UnixNano())
	return settled
}

// beat tells Redis for how long this replica is alive, and returns how many are, as the script says it.
func (m *Membership) beat(ctx context.Context, alive time.Duration) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, max(m.ttl/3, 100*time.Millisecond))
	defer cancel()
	v, err := m.conn.eval(ctx, m.script, newCall(m.key, m.id, alive.Microseconds()))
	if err != nil {
		return 0, err
	}
	n, ok := v.(int64)
	if !ok {
		return 0, fmt.Errorf("script answered %T, want a number", v)
	}
	return n, nil
}
