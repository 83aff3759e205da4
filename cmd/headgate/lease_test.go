package main_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/gatetest"
	"github.com/headgate/headgate/redisstore/redistest"
)

// A limit with lease: true is decided out of blocks: many requests cost few calls of Redis, and what was held is given back at the end. It is
// switched off, like any limit, by a change of the file.
func TestLeases(t *testing.T) {
	server := redistest.Start(t)
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer up.Close()
	text := func(leased bool) string {
		return fmt.Sprintf(`
admin: 127.0.0.1:0
store: {redis: {url: %q, timeout: 5s}, lease: {lifetime: 1m}}
identity: {anonymous: share}
routes: [{path: /, upstream: %q, limits: [{limit: "1000/day fixed-window", lease: %v}], on_store_error: closed}]
`, server.URL(), up.URL, leased)
	}
	file := write(t, "c.yaml", text(true))
	p := serve(t, "--config", file)
	ask := func(times int) {
		t.Helper()
		for range times {
			if resp, body := get(t, p.url, ""); resp.StatusCode != 200 || !strings.Contains(resp.Header.Get("RateLimit"), "r=") {
				t.Fatalf("%d %s %v", resp.StatusCode, body, resp.Header)
			}
		}
	}
	ask(200)
	const decided = `headgate_decisions_total{decision="allowed",limit="/ tenant/day",route="/",source=%q}`
	byLease, byStore := series(t, p, fmt.Sprintf(decided, "lease")), series(t, p, fmt.Sprintf(decided, "store"))
	calls := series(t, p, `headgate_store_seconds_count{op="take",result="ok"}`)
	if byLease+byStore != 200 || byLease < 150 || calls > 50 {
		t.Errorf("%v decided by leases and %v by the store with %v calls, want 200 together and few calls", byLease, byStore, calls)
	}
	if n := series(t, p, "headgate_lease_decisions_total"); n != byLease {
		t.Errorf("%v decisions of leases, want %v", n, byLease)
	}
	leased, spent, held := series(t, p, `headgate_lease_tokens_total{event="leased"}`), series(t, p, `headgate_lease_tokens_total{event="spent"}`), series(t, p, "headgate_lease_held_tokens")
	if spent != byLease || leased != spent+held {
		t.Errorf("%v tokens leased, %v spent, %v held; want as many spent as decided, and the rest held", leased, spent, held)
	}
	if err := os.WriteFile(file, []byte(text(false)), 0o600); err != nil {
		t.Fatal(err)
	}
	gatetest.Await(t, "version 2", func() bool { return series(t, p, "headgate_config_version") == 2 })
	ask(20)
	if n := series(t, p, fmt.Sprintf(decided, "lease")); n != byLease {
		t.Errorf("%v decided by leases once they are off, want %v as before", n, byLease)
	}
	p.signal(syscall.SIGTERM)
	if code := p.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	resp, _ := get(t, serve(t, "--config", file).url, "")
	if left := resp.Header.Get("RateLimit"); !strings.Contains(left, ";r=779;") {
		t.Errorf("%s once all is given back and 221 are used, want r=779", left)
	}
}
