package main_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/gatetest"
	"github.com/headgate/headgate/redisstore/redistest"
)

// TestOutageDividesByTheLivingGateways is the story of three gateways of which one crashes: in the next outage each of the other two
// lets through half of the limit.
func TestOutageDividesByTheLivingGateways(t *testing.T) {
	server := redistest.Start(t)
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer up.Close()
	file := write(t, "headgate.yaml", strings.NewReplacer("REDIS", server.URL(), "UPSTREAM", up.URL).Replace(`
admin: 127.0.0.1:0
store: {redis: {url: "REDIS", timeout: 1s}}
plans: {acme: {limits: ["12/day"]}}
tenants: [{name: acme, plan: acme, api_key_sha256: "`+acmeDigest+`"}]
routes: [{path: /, upstream: "UPSTREAM", on_store_error: local}]
`))
	fleet := []*process{serve(t, "--config", file), serve(t, "--config", file), serve(t, "--config", file)}
	counts := func(n float64, of ...*process) func() bool {
		return func() bool {
			for _, p := range of {
				if series(t, p, "headgate_replicas") != n {
					return false
				}
			}
			return true
		}
	}
	gatetest.Await(t, "all to count three", counts(3, fleet...))
	fleet[2].signal(syscall.SIGKILL)
	gatetest.Await(t, "the others to count two", counts(2, fleet[:2]...))
	server.Kill()
	for i, p := range fleet[:2] {
		allowed := 0
		for range 20 {
			if resp, _ := get(t, p.url, "acme-key"); resp.StatusCode == http.StatusOK {
				allowed++
			}
		}
		if allowed != 6 {
			t.Errorf("gateway %d let %d of 12 through, want 6: its half", i+1, allowed)
		}
	}
}
