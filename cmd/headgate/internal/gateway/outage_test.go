package gateway_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/gatetest"
	"github.com/headgate/headgate/cmd/headgate/internal/gateway"
	"github.com/headgate/headgate/redisstore"
	"github.com/headgate/headgate/redisstore/redistest"
)

// outageFile has a route of each failure mode, and a plan that two gateways share.
const outageFile = `
store: {redis: {url: "redis://127.0.0.1:1", replicas: 2}}
plans: {p: {limits: ["20/hour"]}}
tenants: [{name: acme, plan: p, api_key_sha256: "ACME"}]
routes:
  - {path: /closed, upstream: "UPSTREAM", on_store_error: closed}
  - {path: /open, upstream: "UPSTREAM", on_store_error: open}
  - {path: /local, upstream: "UPSTREAM", on_store_error: local}
`

// guard puts a guard around a store, with a time-out that a busy machine keeps.
func guard(t *testing.T, store headgate.Store, timeout time.Duration) *headgate.Guard {
	t.Helper()
	g, err := headgate.NewGuard(store, headgate.GuardConfig{Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Redis away or hanging: each route answers as it says, nobody waits for longer than the guard lets them, and afterwards decisions come
// from the store again.
func TestRedisAway(t *testing.T) {
	for name, story := range map[string]struct{ away, back func(*redistest.Server) }{
		"killed":  {(*redistest.Server).Kill, (*redistest.Server).Restart},
		"hanging": {(*redistest.Server).Pause, (*redistest.Server).Resume},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			store, err := redisstore.New(server.Client(), redisstore.Config{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = store.Close() })
			up := httptest.NewServer(http.HandlerFunc(hello))
			defer up.Close()
			shared := guard(t, store, 300*time.Millisecond)
			front := httptest.NewServer(newGateway(t, parse(t, outageFile, up.URL), gateway.Options{Store: shared}))
			defer front.Close()
			gatetest.Await(t, "the store's first decision", func() bool { return status(t, front.URL+"/closed") == 200 })

			story.away(server)
			duringOutage(t, front.URL)
			if shared.State() == headgate.BreakerClosed {
				t.Error("the breaker is still closed")
			}
			story.back(server)
			back := time.Now()
			gatetest.Await(t, "the store's decisions", func() bool { return status(t, front.URL+"/closed") != 503 })
			t.Logf("%s: decisions came from the store %v after it was back", name, time.Since(back))
			if _, err := shared.Take(t.Context(), headgate.Charge{Key: "k", Limit: headgate.PerSecond(1)}); err != nil {
				t.Error(err)
			}
		})
	}
}

// duringOutage asks each route, until all that can be different has been: what a replica gives by itself is used up.
func duringOutage(t *testing.T, url string) {
	t.Helper()
	slowest := time.Duration(0)
	ask := func(path string) (*http.Response, string) {
		t.Helper()
		start := time.Now()
		resp, body := do(t, "GET", url+path, key("acme-key"))
		slowest = max(slowest, time.Since(start))
		return resp, body
	}
	local := make(map[int]int)
	for range 30 {
		resp, body := ask("/closed")
		wantProblem(t, resp, body, 503)
		if resp.Header.Get("Retry-After") != "1" {
			t.Errorf("closed: Retry-After %q, want 1", resp.Header.Get("Retry-After"))
		}
		if resp, _ := ask("/open"); resp.StatusCode != 200 {
			t.Errorf("open: %d, want 200", resp.StatusCode)
		}
		resp, _ = ask("/local")
		local[resp.StatusCode]++
	}
	if local[200] != 10 || local[429] != 20 {
		t.Errorf("local: %v, want 10 of 30: half of 20 an hour", local)
	}
	t.Logf("the slowest answer took %v", slowest)
}

func status(t *testing.T, url string) int {
	t.Helper()
	resp, _ := do(t, "GET", url, key("acme-key"))
	return resp.StatusCode
}

// A hangingStore answers nothing until its caller's context ends, and counts the calls.
type hangingStore struct{ takes, under, most atomic.Int64 }

func (s *hangingStore) Take(ctx context.Context, _ headgate.Charge, _ ...headgate.Charge) (headgate.Decision, error) {
	s.takes.Add(1)
	n := s.under.Add(1)
	defer s.under.Add(-1)
	for most := s.most.Load(); n > most && !s.most.CompareAndSwap(most, n); most = s.most.Load() {
	}
	<-ctx.Done()
	return headgate.Decision{}, ctx.Err()
}
func (s *hangingStore) Refund(ctx context.Context, _ headgate.Charge, _ ...headgate.Charge) error {
	<-ctx.Done()
	return ctx.Err()
}
func (s *hangingStore) Reset(ctx context.Context, c headgate.Charge, _ ...headgate.Charge) error {
	return s.Refund(ctx, c)
}

// A burst during an outage: once the breaker is open no request reaches the store, no goroutine is left behind, and the log has no
// more than a line a second.
func TestBurstDuringAnOutage(t *testing.T) {
	const requests, askers = 5000, 100
	up := httptest.NewServer(http.HandlerFunc(hello))
	defer up.Close()
	store := new(hangingStore)
	var changes atomic.Int64
	shared, err := headgate.NewGuard(store, headgate.GuardConfig{
		Timeout: 20 * time.Millisecond, Breaker: headgate.BreakerConfig{Cooldown: time.Hour},
		OnChange: func(_, _ headgate.BreakerState) { changes.Add(1) },
	})
	if err != nil {
		t.Fatal(err)
	}
	var log gatetest.Log
	g := newGateway(t, parse(t, outageFile, up.URL), gateway.Options{Store: shared, Log: slog.New(slog.NewTextHandler(&log, nil))})
	start := time.Now()
	for shared.State() != headgate.BreakerOpen {
		ask(g, "/closed")
	}
	opened, before := store.takes.Load(), runtime.NumGoroutine()
	var most atomic.Int64
	statuses := burst(g, requests, askers, &most)
	seconds := int64(time.Since(start)/time.Second) + 2 // those that it touches

	if got := store.takes.Load(); got != opened {
		t.Errorf("%d of %d requests reached a store behind an open breaker", got-opened, requests)
	}
	if statuses["/closed 503"] != requests/2 || statuses["/local 200"] != 10 || statuses["/local 429"] != requests/2-10 {
		t.Errorf("answers %v", statuses)
	}
	// Those of the upstream's connections, of which there are no more than ten, are not the gateway's own.
	if over := most.Load() - int64(before); over > askers+60 {
		t.Errorf("%d goroutines more during the burst of %d askers", over, askers)
	}
	if n := int64(strings.Count(log.String(), "\n")); n > seconds || n == 0 {
		t.Errorf("%d lines of log in %d seconds, want at most one a second:\n%s", n, seconds, log.String())
	}
	if strings.Contains(log.String(), "acme-key") {
		t.Error("the log holds a key")
	}
	gatetest.Await(t, "the end of all goroutines", func() bool { up.CloseClientConnections(); g.Close(); return runtime.NumGoroutine() <= before+5 })
}

// burst sends requests to the closed and the local route by turns, and counts the answers by route and status.
func burst(g http.Handler, requests, askers int, most *atomic.Int64) map[string]int {
	var mu sync.Mutex
	statuses := make(map[string]int)
	var next atomic.Int64
	var under sync.WaitGroup
	for range askers {
		under.Go(func() {
			for i := next.Add(1); i <= int64(requests); i = next.Add(1) {
				path := []string{"/closed", "/local"}[i%2]
				code := ask(g, path)
				mu.Lock()
				statuses[fmt.Sprint(path, " ", code)]++
				mu.Unlock()
				n := int64(runtime.NumGoroutine())
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
			}
		})
	}
	under.Wait()
	return statuses
}

func ask(g http.Handler, path string) int {
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", path, nil)
	key("acme-key")(r)
	g.ServeHTTP(w, r)
	return w.Code
}

// Lines of several limiters become one, which stands for all of them: none is forgotten.
func TestOutageLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log gatetest.Log
		g := newGateway(t, parse(t, outageFile, "http://127.0.0.1:1"), gateway.Options{
			Store: downStore{}, Log: slog.New(slog.NewTextHandler(&log, nil)),
		})
		const failures = 300
		for range failures { // three seconds
			if _, err := g.Limiter(headgate.FailClosed).Take(t.Context(), headgate.Charge{Key: "k", Cost: 1, Limit: headgate.PerSecond(1)}); err == nil {
				t.Fatal("no failure")
			}
			if _, err := g.Limiter(headgate.FailLocal).Take(t.Context(), headgate.Charge{Key: "k", Cost: 1, Limit: headgate.PerSecond(1)}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 3 {
			t.Fatalf("%d lines in three seconds, want 3:\n%s", len(lines), log.String())
		}
		stood := 0
		for _, line := range lines {
			_, rest, _ := strings.Cut(line, "not_logged=")
			n, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatal(err)
			}
			stood += n + 1
		}
		// All but those of the last second, and what the other limiter's last line stood for, which came too late for this one.
		if stood > 2*failures || stood < 2*failures-3*100 {
			t.Errorf("the lines stand for %d failures of %d:\n%s", stood, 2*failures, log.String())
		}
	})
}

// While the breaker has yet to open, a burst waits for the time-out at most once each, and all at the same time.
func TestBurstThatFindsTheOutage(t *testing.T) {
	const askers = 200
	up := httptest.NewServer(http.HandlerFunc(hello))
	defer up.Close()
	store := new(hangingStore)
	g := newGateway(t, parse(t, outageFile, up.URL), gateway.Options{Store: guard(t, store, 50*time.Millisecond), Log: slog.New(slog.DiscardHandler)})
	var most atomic.Int64
	statuses := burst(g, askers, askers, &most)
	if statuses["/closed 503"] != askers/2 || store.takes.Load() > askers || store.under.Load() > 1 {
		t.Errorf("answers %v; %d asked the store, %d still do", statuses, store.takes.Load(), store.under.Load())
	}
}
