package main_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/gatetest"
	"github.com/headgate/headgate/redisstore/redistest"
)

// fleetFile is a configuration with a shared store. acmeDigest is that of the API key "acme-key".
const fleetFile = `
store: {redis: {url: "REDIS", timeout: TIMEOUT}}
plans: {acme: {limits: ["LIMIT"]}}
tenants: [{name: acme, plan: acme, api_key_sha256: "` + acmeDigest + `"}]
routes:
  - {path: /, upstream: "UPSTREAM", on_store_error: closed}
  - {path: /open, upstream: "UPSTREAM", on_store_error: open}
  - {path: /local, upstream: "UPSTREAM", on_store_error: local}
`

const acmeDigest = "afacab3575137afa4e00d9cbcafcb14c9ae25f779d964eb0ea5b2c4eb5dfd163"

func fleetConfig(t *testing.T, redis, timeout, limit, upstream string) string {
	t.Helper()
	return write(t, "headgate.yaml", strings.NewReplacer("REDIS", redis, "TIMEOUT", timeout, "LIMIT", limit, "UPSTREAM", upstream).Replace(fleetFile))
}

// Two gateways over one Redis spend one budget of 3.
func TestTwoReplicasShareOneBudget(t *testing.T) {
	server := redistest.Start(t)
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer up.Close()
	file := fleetConfig(t, server.URL(), "10s", "3/hour", up.URL)
	a, b := serve(t, "--config", file), serve(t, "--config", file)
	for i, step := range []struct {
		gateway *process
		want    int
	}{{a, 200}, {a, 200}, {b, 200}, {b, 429}, {a, 429}} {
		if resp, body := get(t, step.gateway.url, "acme-key"); resp.StatusCode != step.want {
			t.Errorf("request %d: %d %s, want %d", i+1, resp.StatusCode, body, step.want)
		}
	}
}

// A gateway starts without its Redis, answers as its routes say, and goes back to the store once that is there.
func TestStoreDown(t *testing.T) {
	server := redistest.Start(t)
	server.Stop()
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer up.Close()
	p := serve(t, "--config", fleetConfig(t, server.URL(), "1s", "2/hour", up.URL))
	resp, body := get(t, p.url, "acme-key")
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" || resp.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("closed: %d %v %s, want 503 and Retry-After: 1", resp.StatusCode, resp.Header, body)
	}
	for i, want := range []int{200, 200, 429} {
		if resp, _ := get(t, p.url+"/open", "acme-key"); resp.StatusCode != 200 || resp.Header.Get("RateLimit") != "" {
			t.Errorf("open: %d %v, want 200 and nothing said of limits", resp.StatusCode, resp.Header)
		}
		if resp, _ := get(t, p.url+"/local", "acme-key"); resp.StatusCode != want {
			t.Errorf("local, request %d: %d, want %d", i+1, resp.StatusCode, want)
		}
	}
	if n := strings.Count(p.stderr.String(), "\n"); n > 30 {
		t.Errorf("7 requests without the store made %d lines of log:\n%s", n, p.stderr.String())
	}
	server.Restart()
	awaitStatus(t, p.url, 200) // the first of two, whatever was decided while the store was away
	if resp, _ := get(t, p.url+"/local", "acme-key"); resp.StatusCode != 200 {
		t.Errorf("the store is back: %d, want 200", resp.StatusCode)
	}
	if resp, _ := get(t, p.url+"/open", "acme-key"); resp.StatusCode != 429 {
		t.Errorf("the budget is spent: %d, want 429", resp.StatusCode)
	}
}

// awaitStatus asks until the gateway answers with want.
func awaitStatus(t *testing.T, url string, want int) {
	t.Helper()
	end := time.Now().Add(gatetest.Patience)
	for time.Now().Before(end) {
		if resp, _ := get(t, url, "acme-key"); resp.StatusCode == want {
			return
		}
	}
	t.Fatalf("no %d", want)
}

// The incident that the project began with: four gateways over one Redis, 400 requests/s offered for one tenant at 100/s, for 10 s.
// The upstream counts what arrives, by its own clock: never more than 101 in any second.
//
// The limit has a burst of 1, so there is no first burst to look past: a token is granted 10 ms after the one before at the soonest.
func TestIncident(t *testing.T) {
	const gateways, rate, seconds, limit = 4, 400, 10, 100
	server := redistest.Start(t)
	var arrivals arrivals
	up := httptest.NewServer(&arrivals)
	defer up.Close()
	file := fleetConfig(t, server.URL(), "10s", "100/s burst 1", up.URL)
	var urls []string
	for range gateways {
		urls = append(urls, serve(t, "--config", file).url)
	}
	statuses := offer(t, urls, rate, rate*seconds)
	at := arrivals.sorted()
	if len(statuses) != 2 || statuses[200]+statuses[429] != rate*seconds {
		t.Errorf("statuses %v, want 200 and 429 alone", statuses)
	}
	if statuses[200] != len(at) {
		t.Errorf("%d were allowed and %d arrived", statuses[200], len(at))
	}
	most := busiest(at, time.Second)
	t.Logf("%d of %d arrived, at most %d in a second", len(at), rate*seconds, most)
	if most > limit+1 {
		t.Errorf("%d requests arrived within a second, want at most %d", most, limit+1)
	}
}

// arrivals is an upstream that notes when each request arrives.
type arrivals struct {
	mu sync.Mutex
	at []time.Time
}

func (a *arrivals) ServeHTTP(http.ResponseWriter, *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = append(a.at, time.Now())
}

func (a *arrivals) sorted() []time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	slices.SortFunc(a.at, time.Time.Compare)
	return a.at
}

// busiest returns the most instants that lie within one window.
func busiest(at []time.Time, window time.Duration) int {
	most, from := 0, 0
	for i := range at {
		for at[i].Sub(at[from]) >= window {
			from++
		}
		most = max(most, i-from+1)
	}
	return most
}

// offer sends n requests at a steady rate a second, to each of urls in turn, and returns how often each status was the answer.
func offer(t *testing.T, urls []string, rate, n int) map[int]int {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*gatetest.Patience)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: rate}}
	defer client.CloseIdleConnections()
	var mu sync.Mutex
	statuses := make(map[int]int)
	var under sync.WaitGroup
	start := time.Now()
	for i := range n {
		time.Sleep(time.Until(start.Add(time.Duration(i) * time.Second / time.Duration(rate)))) // the pace of the load
		under.Go(func() {
			status := ask(ctx, client, urls[i%len(urls)])
			mu.Lock()
			defer mu.Unlock()
			statuses[status]++
		})
	}
	under.Wait()
	return statuses
}

// ask returns the status of a request, 0 if there is none.
func ask(ctx context.Context, client *http.Client, url string) int {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0
	}
	r.Header.Set("X-API-Key", "acme-key")
	resp, err := client.Do(r)
	if err != nil {
		return 0
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0
	}
	return resp.StatusCode
}
