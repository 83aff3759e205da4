package redisstore_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate/redisstore"
	"github.com/headgate/headgate/redisstore/redistest"
)

// commands are all that the user of a store must be allowed to do, on the keys that begin with its prefix. docs/redis.md lists them.
var commands = []string{
	"evalsha", "eval", "time", "get", "set", "hget", "hmget", "hset", "hdel", "pttl", "pexpire", "unlink",
	"zadd", "zrange", "zrangebyscore", "zrem", "zremrangebyscore",
}

// clusterCommands are what the client of a Cluster needs besides.
var clusterCommands = []string{"cluster|slots", "asking"}

func setUser(server *redistest.Server, allowed ...string) {
	rule := []any{"ACL", "SETUSER", "headgate", "reset", "on", ">secret", "~headgate:*", "-@all"}
	for _, c := range allowed {
		rule = append(rule, "+"+c)
	}
	server.Do(rule...)
}

// TestRights does everything as a user who may do just what is listed: it suffices, and nothing of it can be left out.
func TestRights(t *testing.T) {
	server := redistest.Start(t)
	try := func(allowed ...string) error {
		t.Helper()
		server.Do("FLUSHALL")
		server.Do("SCRIPT", "FLUSH")
		setUser(server, allowed...)
		now := newClock()
		store, err := redisstore.New(server.Client(func(o *redis.Options) { o.Username, o.Password = "headgate", "secret" }), redisstore.Config{})
		if err != nil {
			t.Fatal(err)
		}
		store.SetClock(now.now)
		return exercise(must(t), store, now)
	}
	if err := try(commands...); err != nil {
		t.Errorf("with all that is listed: %v", err)
	}
	for i, left := range commands {
		if left == "time" {
			continue // whose place the clock of the tests takes
		}
		allowed := append(append([]string{}, commands[:i]...), commands[i+1:]...)
		if err := try(allowed...); err == nil {
			t.Errorf("%s is listed and not needed", left)
		}
	}
	setUser(server, commands...)
	client := server.Client(func(o *redis.Options) { o.Username, o.Password = "headgate", "secret" })
	store, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	take(t, store, aWindow(0)) // by the clock of the server
	other, err := redisstore.New(client, redisstore.Config{Prefix: "other:"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = other.Take(must(t), aWindow(0))
	requireStoreError(t, err, "NOPERM")
}

// clusterRights is the same on a Cluster.
func clusterRights(t *testing.T, cluster *redistest.Cluster) {
	for _, n := range cluster.Nodes() {
		setUser(n, append(commands, clusterCommands...)...)
	}
	client := cluster.Client(func(o *redis.ClusterOptions) { o.Username, o.Password = "headgate", "secret" })
	now := newClock()
	store, err := redisstore.New(client, redisstore.Config{Prefix: "headgate:rights:"})
	if err != nil {
		t.Fatal(err)
	}
	store.SetClock(now.now)
	if err := exercise(must(t), store, now); err != nil {
		t.Fatal(err)
	}
}
