package redistest

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
)

const (
	masterName    = "headgate"
	sentinelCount = 3
	quorum        = 2
)

// A Sentinel is a primary with one replica, watched by three sentinels of which two must agree, of one test.
type Sentinel struct {
	tb        testing.TB
	servers   []*Server // the primary at the start, and its replica
	sentinels []*Server
}

// StartSentinel starts a primary, a replica and three sentinels, and returns when the replica is in step and a failover would find
// all it needs. Each of config is a line of redis.conf for primary and replica. A primary that misses for a second counts as down.
func StartSentinel(tb testing.TB, config ...string) *Sentinel {
	tb.Helper()
	s := &Sentinel{tb: tb}
	for range 2 {
		s.servers = append(s.servers, newServer(tb))
	}
	for range sentinelCount {
		watcher := newServer(tb)
		watcher.args = []string{"--sentinel"}
		s.sentinels = append(s.sentinels, watcher)
	}
	if err := s.start(config); err != nil {
		tb.Fatalf("redistest: sentinel: %v", err)
	}
	return s
}

func (s *Sentinel) start(config []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startPatience)
	defer cancel()
	if err := s.startServers(ctx, config); err != nil {
		return err
	}
	watch := []string{
		fmt.Sprintf("sentinel monitor %s %s %d %d", masterName, host, s.servers[0].port, quorum),
		"sentinel down-after-milliseconds " + masterName + " 1000",
		"sentinel failover-timeout " + masterName + " 3000",
	}
	return together(s.sentinels, func(w *Server) error {
		if err := w.launch(plainPort, watch); err != nil {
			return err
		}
		debug(w, "info-period", 200)
		debug(w, "ask-period", 100)
		debug(w, "tilt-period", 1000)
		debug(w, publishPeriod, 100)
		err := poll(ctx, func() error { return watches(ctx, w) })
		debug(w, publishPeriod, publishDefault)
		return err
	})
}

// A sentinel tells the others what it knows once in a publish period, of which four are the time that it leaves to a former primary to
// become a replica. So the period is short while sentinels get to know each other and when a failover is complete, but never during one: a
// sentinel that has not heard of it yet would undo the promotion.
const (
	publishPeriod  = "publish-period"
	publishDefault = 2000
)

// debug sets a parameter of a sentinel, in milliseconds, which is quicker than it is meant to be. One too old to know the command (before
// Redis 7.0) takes its time.
func debug(w *Server, param string, ms int) { _, _ = w.do("SENTINEL", "DEBUG", param, ms) }

// startServers returns when the replica has what the primary has.
func (s *Sentinel) startServers(ctx context.Context, config []string) error {
	config = append(append(inMemory(), "repl-diskless-sync yes", "repl-diskless-sync-delay 0"), config...)
	if err := together(s.servers, func(r *Server) error { return r.launch(plainPort, config) }); err != nil {
		return err
	}
	primary, replica := s.servers[0], s.servers[1]
	if _, err := replica.do("REPLICAOF", host, primary.port); err != nil {
		return err
	}
	return poll(ctx, func() error { return follows(ctx, replica, primary) })
}

// follows returns nil when the server replica is one, of primary, and in step.
func follows(ctx context.Context, replica, primary *Server) error {
	admin := replica.admin()
	defer func() { _ = admin.Close() }()
	info, err := admin.Info(ctx, "replication").Result()
	if err != nil {
		return err
	}
	port, link := infoField(info, "master_port"), infoField(info, "master_link_status")
	if port != strconv.Itoa(primary.port) || link != "up" {
		return fmt.Errorf("%s is %s of port %q, link %q, want replica of %s", replica.Addr(), infoField(info, "role"), port, link, primary.Addr())
	}
	return nil
}

// leads returns nil when the server takes itself for a primary.
func leads(ctx context.Context, server *Server) error {
	admin := server.admin()
	defer func() { _ = admin.Close() }()
	info, err := admin.Info(ctx, "replication").Result()
	if err != nil {
		return err
	}
	if role := infoField(info, "role"); role != "master" {
		return fmt.Errorf("%s is %s, want master", server.Addr(), role)
	}
	return nil
}

// watches returns nil when a sentinel knows the replica and the other sentinels, and finds them well.
func watches(ctx context.Context, w *Server) error {
	admin := redis.NewSentinelClient(w.sentinelOptions())
	defer func() { _ = admin.Close() }()
	master, err := admin.Master(ctx, masterName).Result()
	if err != nil {
		return err
	}
	if master["flags"] != "master" || master["num-slaves"] != "1" || master["num-other-sentinels"] != strconv.Itoa(sentinelCount-1) {
		return fmt.Errorf("sentinel %s: %s with %s replicas, knows %s others", w.Addr(), master["flags"], master["num-slaves"], master["num-other-sentinels"])
	}
	replicas, err := admin.Replicas(ctx, masterName).Result()
	if err != nil {
		return err
	}
	for _, r := range replicas {
		if r["flags"] != "slave" || r["master-link-status"] != "ok" {
			return fmt.Errorf("sentinel %s: replica is %s, link %s", w.Addr(), r["flags"], r["master-link-status"])
		}
	}
	return admin.CkQuorum(ctx, masterName).Err()
}

func (s *Server) sentinelOptions() *redis.Options {
	return &redis.Options{Addr: s.Addr(), DialTimeout: patience, ReadTimeout: patience, WriteTimeout: patience, MaxRetries: -1, Protocol: 2}
}

// MasterName returns the name under which the sentinels know the primary.
func (s *Sentinel) MasterName() string { return masterName }

// Addrs returns the addresses of the sentinels.
func (s *Sentinel) Addrs() []string { return addrs(s.sentinels) }

// Sentinels returns the sentinels themselves. The slice is the caller's.
func (s *Sentinel) Sentinels() []*Server { return append([]*Server(nil), s.sentinels...) }

// Client returns a new client that asks the sentinels for the primary, closed when the test ends. It heeds the deadline of a context,
// and otherwise waits ten seconds; edit, when given, changes its options before it is made.
func (s *Sentinel) Client(edit ...func(*redis.FailoverOptions)) *redis.Client {
	o := &redis.FailoverOptions{
		MasterName: masterName, SentinelAddrs: s.Addrs(),
		DialTimeout: patience, ReadTimeout: patience, WriteTimeout: patience, ContextTimeoutEnabled: true,
	}
	for _, f := range edit {
		f(o)
	}
	c := redis.NewFailoverClient(o)
	s.tb.Cleanup(func() { _ = c.Close() }) // a test may have closed it
	return c
}

// Primary returns the server that the first sentinel which can answer takes for the primary.
func (s *Sentinel) Primary() *Server {
	s.tb.Helper()
	for _, w := range s.sentinels {
		if !w.running() {
			continue
		}
		primary, err := s.primarySeenBy(context.Background(), w)
		if err != nil {
			s.tb.Fatalf("redistest: primary: %v", err)
		}
		return primary
	}
	s.tb.Fatalf("redistest: primary: no sentinel is running")
	return nil
}

// Replica returns the server that is not the primary.
func (s *Sentinel) Replica() *Server {
	s.tb.Helper()
	return s.other(s.Primary())
}

func (s *Sentinel) other(server *Server) *Server {
	if server == s.servers[0] {
		return s.servers[1]
	}
	return s.servers[0]
}

func (s *Sentinel) primarySeenBy(ctx context.Context, w *Server) (*Server, error) {
	admin := redis.NewSentinelClient(w.sentinelOptions())
	defer func() { _ = admin.Close() }()
	at, err := admin.GetMasterAddrByName(ctx, masterName).Result()
	if err != nil {
		return nil, err
	}
	for _, server := range s.servers {
		if len(at) == 2 && at[1] == strconv.Itoa(server.port) {
			return server, nil
		}
	}
	return nil, fmt.Errorf("sentinel %s: primary at %v, which is none of %v", w.Addr(), at, addrs(s.servers))
}
