package main_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/gatetest"
	"github.com/headgate/headgate/redisstore/redistest"
)

// TestEvictionIsSaid: a Redis that drops keys when it is full is said at the start and in a metric; one that does not, is not.
func TestEvictionIsSaid(t *testing.T) {
	const warning = "drops keys when its memory is full"
	config := `
admin: 127.0.0.1:0
store: {redis: {url: "REDIS"}}
identity: {anonymous: share}
routes: [{path: /, upstream: "http://127.0.0.1:1", limits: ["5/hour"], on_store_error: closed}]
`
	evicting := redistest.Start(t, "maxmemory 64mb", "maxmemory-policy allkeys-lru")
	p := serve(t, "--config", write(t, "a.yaml", strings.ReplaceAll(config, "REDIS", evicting.URL())))
	gatetest.Await(t, "the metric", func() bool { return series(t, p, "headgate_store_evicts") == 1 })
	gatetest.Await(t, "the warning", func() bool { return strings.Contains(p.stderr.String(), warning) })

	steady := redistest.Start(t, "maxmemory 64mb", "maxmemory-policy noeviction")
	p = serve(t, "--config", write(t, "b.yaml", strings.ReplaceAll(config, "REDIS", steady.URL())))
	client, asked := steady.Client(), 0
	gatetest.Await(t, "the gateway to ask", func() bool {
		asked++ // the server counts this INFO once it is over
		return !strings.Contains(client.Info(t.Context(), "commandstats").Val(), fmt.Sprintf("cmdstat_info:calls=%d,", asked-1)) && asked > 1
	})
	if strings.Contains(p.stderr.String(), warning) || series(t, p, "headgate_store_evicts") != 0 {
		t.Errorf("a Redis with noeviction is said to evict:\n%s", p.stderr.String())
	}
}
