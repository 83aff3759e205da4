package load_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/load"
	"github.com/headgate/headgate/redisstore/redistest"
	"github.com/redis/go-redis/v9"
)

// fillWith sets keys, and more of them than one step of a scan looks at, some of which look like the prefix.
func fillWith(t *testing.T, client redis.UniversalClient, prefix string) (others []string) {
	t.Helper()
	pipe := client.Pipeline()
	for i := range 3000 {
		pipe.Set(t.Context(), fmt.Sprintf("%s%d", prefix, i), 1, 0)
	}
	others = []string{"bench", "headgate:{1}s0", "headgate-bench", "x" + prefix, "bench-aX:1", "bench-a*"}
	for i := range 2000 {
		others = append(others, fmt.Sprintf("other-%d", i))
	}
	for _, key := range others {
		pipe.Set(t.Context(), key, 1, 0)
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	slices.Sort(others)
	return others
}

func keysOf(t *testing.T, client redis.Cmdable) []string {
	t.Helper()
	keys, err := client.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// Clean removes what begins with the prefix and touches nothing else, even if the prefix is a pattern.
func TestClean(t *testing.T) {
	client := redistest.Start(t).Client()
	for _, prefix := range []string{"bench-a*:", `be[n]c?\h:`} {
		others := fillWith(t, client, prefix)
		if err := load.Clean(t.Context(), client, prefix); err != nil {
			t.Fatal(err)
		}
		left := keysOf(t, client)
		slices.Sort(left)
		if !slices.Equal(left, others) {
			t.Errorf("%q: %d keys are left, want the %d others", prefix, len(left), len(others))
		}
		if err := client.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := load.Clean(t.Context(), client, ""); err == nil {
		t.Error("no prefix, and no error")
	}
}

func TestCleanCluster(t *testing.T) {
	client := redistest.StartCluster(t, 3).Client()
	others := fillWith(t, client, "bench:")
	if err := load.Clean(t.Context(), client, "bench:"); err != nil {
		t.Fatal(err)
	}
	var left int64
	for _, key := range others {
		n, err := client.Exists(t.Context(), key).Result()
		if err != nil {
			t.Fatal(err)
		}
		left += n
	}
	sizes, err := client.DBSize(context.WithoutCancel(t.Context())).Result()
	if err != nil || sizes != int64(len(others)) || left != sizes {
		t.Errorf("%d keys in all, %d of the %d others (%v)", sizes, left, len(others), err)
	}
}
