package main_test

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/redisstore/redistest"
)

// The URLs of a Cluster and of Sentinels lead to a store that decides.
func TestTakeFromClusterAndSentinel(t *testing.T) {
	cluster := redistest.StartCluster(t, 3)
	sentinel := redistest.StartSentinel(t)
	for _, url := range []string{
		"redis+cluster://" + strings.Join(cluster.Addrs(), ","),
		"redis+sentinel://" + strings.Join(sentinel.Addrs(), ",") + "/" + sentinel.MasterName(),
	} {
		for i, want := range []int{0, 0, 1} {
			code, stdout, stderr := run(t, "take", "--timeout", "10s", "--redis", url, "--key", "k", "--limit", "2/hour", "--limit", "5/day")
			if code != want {
				t.Errorf("%s, take %d: %d %s%s, want %d", url, i+1, code, stdout, stderr, want)
			}
		}
	}
}
