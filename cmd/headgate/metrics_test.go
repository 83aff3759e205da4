package main_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/gatetest"
	"github.com/headgate/headgate/redisstore/redistest"
)

// series returns what the metrics page of p says of a series, such as `headgate_x{a="b"}`; -1 = nothing.
func series(t *testing.T, p *process, name string) float64 {
	t.Helper()
	resp, body := get(t, p.admin()+"/metrics", "")
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("metrics: %d %s", resp.StatusCode, body)
	}
	for line := range strings.Lines(body) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+" "); ok {
			v, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	return -1
}

// A store goes away and comes back: each decision is counted with its source, and what was sent is what the upstream got, throughout.
func TestMetricsThroughAnOutage(t *testing.T) {
	server := redistest.Start(t)
	var served atomic.Int64
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served.Add(1) }))
	defer up.Close()
	p := serve(t, "--config", write(t, "c.yaml", fmt.Sprintf(`
admin: 127.0.0.1:0
store: {redis: {url: %q, timeout: 2s}}
identity: {anonymous: share}
routes: [{path: /, upstream: %q, limits: ["5/hour"], on_store_error: local}]
`, server.URL(), up.URL)))
	const decisions = `headgate_decisions_total{decision=%q,limit="/ tenant/hour",route="/",source=%q}`
	want := func(decision, source string, n float64) {
		t.Helper()
		if got := series(t, p, fmt.Sprintf(decisions, decision, source)); got != n {
			t.Errorf("%s by %s: %v, want %v", decision, source, got, n)
		}
	}
	for range 7 {
		get(t, p.url, "")
	}
	want("allowed", "store", 5)
	want("denied", "store", 2)
	server.Stop()
	for range 8 {
		get(t, p.url, "")
	}
	want("allowed", "local", 5)
	want("denied", "local", 3)
	if got := series(t, p, "headgate_breaker_state"); got < 1 {
		t.Errorf("breaker %v, want open", got)
	}
	if failed, open := series(t, p, `headgate_store_errors_total{reason="failed"}`), series(t, p, `headgate_store_errors_total{reason="breaker"}`); failed+open != 8 || open == 0 {
		t.Errorf("%v failed and %v not asked, want 8 together", failed, open)
	}
	server.Restart()
	gatetest.Await(t, "the breaker to close", func() bool { get(t, p.admin()+"/readyz", ""); return series(t, p, "headgate_breaker_state") == 0 })
	if sent := series(t, p, `headgate_upstream_sent_total{route="/"}`); sent != float64(served.Load()) || sent != 10 {
		t.Errorf("%v sent, the upstream got %d, want 10", sent, served.Load())
	}
	if n := series(t, p, `headgate_store_seconds_count{op="take",result="ok"}`); n < 7 {
		t.Errorf("%v answers of the store measured, want at least 7", n)
	}
}

// The configuration in force is visible, and so is that a newer one was refused. Profiles come and go with it.
func TestMetricsOfReloadsAndProfiles(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer up.Close()
	file := write(t, "c.yaml", openFile("admin: 127.0.0.1:0", up.URL))
	p := serve(t, "--config", file)
	profiles := func() int { resp, _ := get(t, p.admin()+"/debug/pprof/", ""); return resp.StatusCode }
	if n, good, status := series(t, p, "headgate_config_version"), series(t, p, "headgate_config_last_reload_successful"), profiles(); n != 1 || good != 1 || status != 404 {
		t.Errorf("at the start version %v, good %v, profiles %d; want 1, 1, 404", n, good, status)
	}
	overwrite := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overwrite(openFile("admin: 127.0.0.1:0\nadmin_pprof: true", up.URL))
	gatetest.Await(t, "version 2", func() bool { return series(t, p, "headgate_config_version") == 2 })
	if status := profiles(); status != 200 {
		t.Errorf("profiles after the reload: %d, want 200", status)
	}
	if _, body := get(t, p.url+"/debug/pprof/", ""); body != "" { // what the upstream says of it
		t.Error("profiles on the public listener")
	}
	overwrite("nonsense: true\n")
	gatetest.Await(t, "the refusal", func() bool { return series(t, p, "headgate_config_last_reload_successful") == 0 })
	if n, failed := series(t, p, "headgate_config_version"), series(t, p, "headgate_config_reload_failures_total"); n != 2 || failed != 1 {
		t.Errorf("after a bad file version %v with %v failures, want 2 with 1", n, failed)
	}
}

// Who is denied most is told to those who may ask the decision API alone.
func TestTop(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer up.Close()
	p := serve(t, "--config", write(t, "c.yaml", fmt.Sprintf(`
admin: 127.0.0.1:0
api: {token_sha256: %q}
plans: {free: {limits: ["2/hour"]}}
tenants: [{name: acme, plan: free, api_key_sha256: %q}]
routes: [{path: /, upstream: %q}]
`, gatetest.Digest("token"), gatetest.Digest("acme-key"), up.URL)))
	for range 5 {
		get(t, p.url, "acme-key")
	}
	if resp, _ := get(t, p.admin()+"/v1/top", ""); resp.StatusCode != 401 {
		t.Errorf("without a token: %d, want 401", resp.StatusCode)
	}
	resp, body := gatetest.Caller{}.Send(t, http.MethodGet, p.admin()+"/v1/top", nil, func(r *http.Request) { r.Header.Set("Authorization", "Bearer token") })
	if resp.StatusCode != 200 || !strings.Contains(body, `"allowed":[{"tenant":"acme","count":2,"max_error":0}]`) ||
		!strings.Contains(body, `"denied":[{"tenant":"acme","count":3,"max_error":0}]`) || strings.Contains(body, "acme-key") {
		t.Errorf("%d %s, want acme allowed twice and denied three times", resp.StatusCode, body)
	}
}

// Those who are denied and come again are answered without asking the store, while a denial of its still holds, and counted as such. It holds
// while the store is away, too.
func TestDenialCache(t *testing.T) {
	server := redistest.Start(t)
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer up.Close()
	p := serve(t, "--config", write(t, "c.yaml", fmt.Sprintf(`
admin: 127.0.0.1:0
store: {redis: {url: %q, timeout: 2s}, denial_cache: {max_staleness: 1m}}
identity: {anonymous: share}
routes: [{path: /, upstream: %q, limits: ["2/day fixed-window"], on_store_error: closed}]
`, server.URL(), up.URL)))
	status := func(want int) {
		t.Helper()
		if resp, body := get(t, p.url, ""); resp.StatusCode != want {
			t.Fatalf("%d %s, want %d", resp.StatusCode, body, want)
		}
	}
	for _, want := range []int{200, 200, 429, 429, 429} {
		status(want)
	}
	const denied = `headgate_decisions_total{decision="denied",limit="/ tenant/day",route="/",source=%q}`
	for name, want := range map[string]float64{
		fmt.Sprintf(denied, "store"): 1, fmt.Sprintf(denied, "cache"): 2,
		"headgate_denial_cache_saved_total": 2, "headgate_denial_cache_evicted_total": 0,
	} {
		if got := series(t, p, name); got != want {
			t.Errorf("%s %v, want %v", name, got, want)
		}
	}
	server.Stop()
	status(429)
}
