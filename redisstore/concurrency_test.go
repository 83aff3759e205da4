package redisstore_test

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore"
	"github.com/headgate/headgate/redisstore/redistest"
)

// requireHundred has several stores take 1,000 times at once from a fresh key of capacity 100, under each algorithm.
func requireHundred(t *testing.T, prefix string, client func() redis.UniversalClient) {
	t.Helper()
	var stores []*redisstore.Store
	for range 3 {
		stores = append(stores, open(t, client(), redisstore.Config{Prefix: prefix}))
	}
	for _, a := range algorithms {
		limit := hundred(a)
		if a == headgate.TokenBucket || a == headgate.SlidingWindow {
			limit.Name = "n"
		}
		if got := mustSpend(t, 1000, stores, headgate.Charge{Key: "key", Cost: 1, Limit: limit}); got != 100 {
			t.Errorf("%v: %d of 1000 granted, want 100", a, got)
		}
	}
}

func TestThousandTakes(t *testing.T) {
	server := redistest.Start(t)
	requireHundred(t, "", func() redis.UniversalClient { return server.Client() })
}

// TestThousandTakesWithScriptFlush has the server forget its scripts all the time.
func TestThousandTakesWithScriptFlush(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client()
	stop := beside(func() {
		if err := admin.ScriptFlush(must(t)).Err(); err != nil {
			t.Error(err)
		}
	})
	defer stop()
	requireHundred(t, "", func() redis.UniversalClient { return server.Client() })
}

// TestManyChargesAtOnce has takes of several charges race on one server: each is all or nothing, and so no limit has one more or one less.
func TestManyChargesAtOnce(t *testing.T) {
	server := redistest.Start(t)
	stores := []*redisstore.Store{open(t, server.Client(), redisstore.Config{}), open(t, server.Client(), redisstore.Config{})}
	for _, a := range algorithms {
		organisation := headgate.Charge{Key: "organisation", Cost: 1, Limit: hundred(a)}
		granted := 0
		for user := range 6 {
			own := headgate.Charge{Key: fmt.Sprint("user", user), Cost: 1, Limit: hundred(a)}
			own.Limit.Count = 20
			got := mustSpend(t, 50, stores, own, organisation)
			granted += got
			if want := min(20, 100-20*user); got != want {
				t.Errorf("%v: user %d was granted %d, want %d", a, user, got, want)
			}
			if l := left(t, stores[0], own); l != int64(20-got) {
				t.Errorf("%v: user %d has %d left of 20 and was granted %d", a, user, l, got)
			}
		}
		if l := left(t, stores[0], organisation); granted != 100 || l != 0 {
			t.Errorf("%v: %d granted in all, and %d left of 100", a, granted, l)
		}
	}
}
