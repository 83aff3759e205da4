package redisstore_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore"
	"github.com/headgate/headgate/redisstore/redistest"
)

// join makes a member that leaves when the test ends.
func join(t *testing.T, client redis.UniversalClient, cfg redisstore.MembershipConfig) *redisstore.Membership {
	t.Helper()
	m, err := redisstore.NewMembership(client, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	return m
}

// awaitReplicas polls until every member counts want replicas. It fails when they do not in ten seconds, which only a broken list takes.
func awaitReplicas(t *testing.T, want int, members ...*redisstore.Membership) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for _, m := range members {
		for m.Replicas() != want {
			if time.Now().After(deadline) {
				t.Fatalf("member %s counts %d replicas, want %d", m.ID(), m.Replicas(), want)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}

func TestMembershipCountsTheLiving(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client()
	cfg := redisstore.MembershipConfig{TTL: 300 * time.Millisecond}
	a, b, c := join(t, client, cfg), join(t, client, cfg), join(t, client, cfg)
	awaitReplicas(t, 3, a, b, c)
	if ttl := client.PTTL(t.Context(), "headgate:members").Val(); ttl <= 0 {
		t.Errorf("the list has TTL %v, want one", ttl)
	}
	if err := b.Close(t.Context()); err != nil { // gone at once: the next sign of life of the others shows it
		t.Fatal(err)
	}
	if n := client.ZCard(t.Context(), "headgate:members").Val(); n != 2 {
		t.Errorf("%d on the list after one left, want 2", n)
	}
	awaitReplicas(t, 2, a, c)
	c.Crash()
	awaitReplicas(t, 1, a) // after the TTL
	other := join(t, client, redisstore.MembershipConfig{Prefix: "other:", TTL: 300 * time.Millisecond})
	awaitReplicas(t, 1, other, a)
}

func TestMembershipHoldsWithoutRedis(t *testing.T) {
	server := redistest.Start(t)
	cfg := redisstore.MembershipConfig{TTL: 300 * time.Millisecond}
	a, b := join(t, server.Client(), cfg), join(t, server.Client(), cfg)
	awaitReplicas(t, 2, a, b)
	server.Kill()
	seen := a.Seen()
	early := join(t, server.Client(), cfg) // starts without Redis, and counts itself
	time.Sleep(2 * cfg.TTL)                // not to wait for anything: so that a number that does not hold would be gone
	if a.Replicas() != 2 || early.Replicas() != 1 || !early.Seen().IsZero() {
		t.Errorf("without Redis: %d and %d replicas, want the last known 2 and 1", a.Replicas(), early.Replicas())
	}
	server.Restart()
	awaitReplicas(t, 3, a, b, early)
	if !a.Seen().After(seen) {
		t.Error("Seen did not move on with Redis back")
	}
}

// TestMembershipAfterDataLost has Redis come back without the list, and go again before the others could tell it that they are alive: the
// number does not go down. Who does not come back is found out after the TTL.
func TestMembershipAfterDataLost(t *testing.T) {
	client := redistest.Start(t).Client()
	cfg := redisstore.MembershipConfig{TTL: time.Second}
	a, b := join(t, client, cfg), join(t, client, cfg)
	awaitReplicas(t, 2, a, b)
	b.Crash()
	seen := a.Seen()
	if err := client.Del(t.Context(), "headgate:members").Err(); err != nil {
		t.Fatal(err)
	}
	for a.Seen().Equal(seen) {
		time.Sleep(time.Millisecond)
	}
	if a.Replicas() != 2 {
		t.Errorf("%d replicas at the first sign of life on a list that was lost, want still 2", a.Replicas())
	}
	awaitReplicas(t, 1, a)
}

// TestMembershipAfterClockStep: a member whose time of death lies far ahead, since the clock has stepped back, goes all the same.
func TestMembershipAfterClockStep(t *testing.T) {
	client := redistest.Start(t).Client()
	ahead := float64(time.Now().Add(time.Hour).UnixMicro())
	if err := client.ZAdd(t.Context(), "headgate:members", redis.Z{Score: ahead, Member: "crashed"}).Err(); err != nil {
		t.Fatal(err)
	}
	a := join(t, client, redisstore.MembershipConfig{TTL: 200 * time.Millisecond})
	awaitReplicas(t, 2, a)
	deadline := time.Now().Add(10 * time.Second)
	for client.ZScore(t.Context(), "headgate:members", "crashed").Err() == nil {
		if score := client.ZScore(t.Context(), "headgate:members", "crashed").Val(); score >= ahead {
			t.Fatal("the time of death stays an hour ahead")
		}
		// It is brought back to one TTL from now with each sign of life, until a sign comes that finds it over.
		if time.Now().After(deadline) {
			t.Fatal("a member that crashed before the clock stepped back stays")
		}
		time.Sleep(20 * time.Millisecond)
	}
	awaitReplicas(t, 1, a)
}

// TestOutageDividesByTheLiving is the story of three replicas of which one dies: the next outage divides by two.
func TestOutageDividesByTheLiving(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client()
	cfg := redisstore.MembershipConfig{TTL: 300 * time.Millisecond}
	a, b, c := join(t, client, cfg), join(t, client, cfg), join(t, client, cfg)
	awaitReplicas(t, 3, a, b, c)
	store, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	limiter, err := headgate.New(store, []headgate.Limit{headgate.PerDay(60)}, headgate.Config{
		OnStoreError: headgate.FailLocal, Replicas: a.Replicas, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Crash()
	awaitReplicas(t, 2, a, b)
	server.Kill()
	allowed := 0
	for range 100 {
		d, err := limiter.Allow(t.Context(), "acme")
		if err != nil || d.Source != headgate.FromLocal {
			t.Fatalf("%+v, %v", d, err)
		}
		if d.Allowed {
			allowed++
		}
	}
	if allowed != 30 {
		t.Errorf("one of two replicas allowed %d of 60 during the outage, want 30", allowed)
	}
}

func TestMembershipConfig(t *testing.T) {
	client := redis.NewClient(&redis.Options{})
	defer client.Close()
	for name, cfg := range map[string]redisstore.MembershipConfig{
		"brace": {Prefix: "a{b}"}, "negative": {TTL: -1}, "too short": {TTL: time.Microsecond}, "too long": {TTL: 25 * time.Hour},
	} {
		if _, err := redisstore.NewMembership(client, cfg); !errors.Is(err, headgate.ErrInvalidConfig) {
			t.Errorf("%s: %v, want ErrInvalidConfig", name, err)
		}
	}
	if _, err := redisstore.NewMembership(nil, redisstore.MembershipConfig{}); !errors.Is(err, headgate.ErrInvalidConfig) {
		t.Errorf("no client: %v, want ErrInvalidConfig", err)
	}
}
