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

// On SIGTERM the gateway is at once not ready and still takes requests, so that whoever sends them can go elsewhere first.
func TestNotReadyBeforeItEnds(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer up.Close()
	p := serve(t, "--config", write(t, "c.yaml", openFile("admin: 127.0.0.1:0\ndrain: 3s", up.URL)))
	ready := func() (int, string) {
		resp, body := get(t, p.admin()+"/readyz", "")
		return resp.StatusCode, body
	}
	if status, body := ready(); status != 200 || body != "{\"status\":\"ready\"}\n" {
		t.Errorf("/readyz: %d %s", status, body)
	}
	p.signal(syscall.SIGTERM)
	gatetest.Await(t, "readyz to say no", func() bool { status, _ := ready(); return status == 503 })
	if resp, _ := get(t, p.url, ""); resp.StatusCode != 200 {
		t.Errorf("a request while it drains: %d, want 200", resp.StatusCode)
	}
	if resp, _ := get(t, p.admin()+"/healthz", ""); resp.StatusCode != 200 {
		t.Errorf("/healthz while it drains: %d, want 200", resp.StatusCode)
	}
	if code := p.wait(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// Without its store the gateway is ready and says that it is degraded, and why; it finds out that the store is back where no request does.
func TestDegradedIsReady(t *testing.T) {
	server := redistest.Start(t)
	server.Stop()
	p := serve(t, "--config", write(t, "c.yaml", `
admin: 127.0.0.1:0
store: {redis: {url: "`+server.URL()+`", timeout: 1s}}
identity: {anonymous: share}
routes: [{path: /, upstream: "http://127.0.0.1:1", limits: ["1/s"], on_store_error: closed}]
`))
	resp, body := get(t, p.admin()+"/readyz", "")
	if resp.StatusCode != 200 || !strings.Contains(body, `"status":"degraded"`) || !strings.Contains(body, "on_store_error answers: store cannot answer: ") {
		t.Errorf("without the store: %d %s", resp.StatusCode, body)
	}
	server.Restart()
	gatetest.Await(t, "readyz to say that all is well", func() bool {
		_, body := get(t, p.admin()+"/readyz", "")
		return body == "{\"status\":\"ready\"}\n"
	})
}

// A store that can be read and not written to decides nothing: /readyz says so, and the breaker stays open.
func TestReadOnlyStoreIsDegraded(t *testing.T) {
	server := redistest.Start(t)
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer up.Close()
	text := strings.NewReplacer("REDIS", server.URL(), "TIMEOUT", "1s", "LIMIT", "100/hour", "UPSTREAM", up.URL).Replace(fleetFile)
	p := serve(t, "--config", write(t, "c.yaml", "admin: 127.0.0.1:0\n"+text))
	if resp, _ := get(t, p.url, "acme-key"); resp.StatusCode != 200 {
		t.Fatalf("status %d before, want 200", resp.StatusCode)
	}
	server.Do("REPLICAOF", "127.0.0.1", "1")
	for range 8 {
		if _, body := get(t, p.admin()+"/readyz", ""); !strings.Contains(body, `"status":"degraded"`) || !strings.Contains(body, "READONLY") {
			t.Fatalf("on a replica: %s", body)
		}
	}
	server.Do("REPLICAOF", "NO", "ONE")
	gatetest.Await(t, "the store's decisions", func() bool { resp, _ := get(t, p.url, "acme-key"); return resp.StatusCode == 200 })
	if n := strings.Count(p.stderr.String(), "it decides again"); n != 1 {
		t.Errorf("%d lines that the store is back, want 1", n)
	}
}

// All routes share what is known of the store: what one finds out, no other waits for.
func TestOneBreaker(t *testing.T) {
	server := redistest.Start(t)
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer up.Close()
	text := strings.NewReplacer("REDIS", server.URL(), "TIMEOUT", "200ms", "LIMIT", "100/hour", "UPSTREAM", up.URL).Replace(fleetFile)
	p := serve(t, "--config", write(t, "c.yaml", "admin: 127.0.0.1:0\n"+text))
	server.Pause()
	for range 8 {
		get(t, p.url, "acme-key")
	}
	if !strings.Contains(p.stderr.String(), "the store is not asked any more") {
		t.Errorf("8 requests to one route did not open the breaker:\n%s", p.stderr.String())
	}
	for _, path := range []string{"/open", "/local"} {
		if resp, _ := get(t, p.url+path, "acme-key"); resp.StatusCode != 200 {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
	if _, body := get(t, p.admin()+"/readyz", ""); !strings.Contains(body, "has not answered lately") {
		t.Errorf("readyz asked the store by itself: %s", body)
	}
	server.Resume()
	gatetest.Await(t, "the store's decisions", func() bool { resp, _ := get(t, p.url, "acme-key"); return resp.StatusCode == 200 })
	if !strings.Contains(p.stderr.String(), "it decides again") {
		t.Errorf("no word that the store is back:\n%s", p.stderr.String())
	}
}
