package redisstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore"
	"github.com/headgate/headgate/redisstore/redistest"
)

// TestHangingServer stops the server. Each method returns when its context ends, whether or not the client heeds that: the client's own
// time-outs are an hour. When the server goes on, what was asked meanwhile has happened once or not at all.
func TestHangingServer(t *testing.T) {
	for _, honours := range []bool{true, false} {
		server := redistest.Start(t)
		client := server.Client(func(o *redis.Options) {
			o.ContextTimeoutEnabled = honours
			o.ReadTimeout, o.WriteTimeout, o.MaxRetries = time.Hour, time.Hour, 3
		})
		store := open(t, client, redisstore.Config{})
		c := headgate.Charge{Key: secretKey, Cost: 10, Limit: hundred(headgate.TokenBucket)}
		take(t, store, c)
		server.Pause()
		for name, do := range methods {
			if name == "reset" {
				continue // would hide what the others did
			}
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			err := do(ctx, store, c)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("client honours the context: %v: %s: got %v, want DeadlineExceeded", honours, name, err)
			}
			requireStoreError(t, err, "deadline")
			cancel()
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := store.Take(ctx, c); !errors.Is(err, context.Canceled) {
			t.Errorf("client honours the context: %v: got %v, want Canceled", honours, err)
		}
		server.Resume()
		got := left(t, open(t, server.Client(), redisstore.Config{}), c)
		switch got {
		case 90, 80, 100: // neither, the take alone, the refund alone or first
		default:
			t.Errorf("client honours the context: %v: %d left, want 90, or with a take 80, or with a refund 100", honours, got)
		}
	}
}

// TestManyHang has a thousand takes wait for a server that hangs: all return when their context ends, and each was executed at most once.
func TestManyHang(t *testing.T) {
	for _, honours := range []bool{true, false} {
		server := redistest.Start(t)
		client := server.Client(func(o *redis.Options) {
			o.ContextTimeoutEnabled = honours
			o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = time.Hour, time.Hour, time.Hour
		})
		store := open(t, client, redisstore.Config{})
		c := headgate.Charge{Key: "k", Cost: 1, Limit: headgate.Limit{Count: 1_000_000, Period: headgate.MaxPeriod}}
		warm := mustSpend(t, 50, []*redisstore.Store{store}, c)
		server.Pause()
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		sum, _ := spend(ctx, 1000, []*redisstore.Store{store}, c)
		cancel()
		server.Resume()
		if sum.failed != 1000 {
			t.Fatalf("%d of 1000 takes failed, want all", sum.failed)
		}
		used := c.Limit.Count - left(t, open(t, server.Client(), redisstore.Config{}), c)
		if used < int64(warm) || used > int64(warm+1000) {
			t.Errorf("client honours the context: %v: %d counted after %d that were granted and 1000 of which nothing is known", honours, used, warm)
		}
		if d := take(t, store, c); !d.Allowed {
			t.Errorf("got %+v once the server goes on, want allowed", d)
		}
	}
}
