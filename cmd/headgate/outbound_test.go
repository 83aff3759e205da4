package main_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/redisstore/redistest"
)

// A refuser is an upstream that answers its first request with 429 and Retry-After: 2, and notes when the others come after that.
type refuser struct {
	mu      sync.Mutex
	refused time.Time
	at      []time.Duration
}

func (u *refuser) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.refused.IsZero() {
		u.refused = time.Now()
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	u.at = append(u.at, time.Since(u.refused))
}

// Two gateways over one Redis, an upstream that asks one of them for 2 s of silence: it hears nothing from either for so long, then from all
// who waited; and the metric of what was sent, summed over the gateways, is what it counted.
func TestTheFleetHeedsAnUpstream(t *testing.T) {
	server := redistest.Start(t)
	var upstream refuser
	up := httptest.NewServer(&upstream)
	defer up.Close()
	file := write(t, "headgate.yaml", strings.NewReplacer("REDIS", server.URL(), "UPSTREAM", up.URL).Replace(`
admin: 127.0.0.1:0
store: {redis: {url: "REDIS", timeout: 10s}}
plans: {acme: {limits: ["1000/s"]}}
tenants: [{name: acme, plan: acme, api_key_sha256: "`+acmeDigest+`"}]
routes: [{path: /, upstream: "UPSTREAM", on_store_error: closed, outbound: {max_wait: 60s, limits: ["500/s"]}}]
`))
	fleet := []*process{serve(t, "--config", file), serve(t, "--config", file)}
	if resp, body := get(t, fleet[0].url, "acme-key"); resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") != "2" {
		t.Fatalf("%d %s, want the upstream's 429", resp.StatusCode, body)
	}
	const each = 10
	var wg sync.WaitGroup
	for _, p := range fleet {
		for range each {
			wg.Go(func() {
				if resp, body := get(t, p.url, "acme-key"); resp.StatusCode != http.StatusOK {
					t.Errorf("%d %s, want 200", resp.StatusCode, body)
				}
			})
		}
	}
	wg.Wait()
	for _, at := range upstream.at {
		if at < 2*time.Second {
			t.Errorf("a request came after %v, want 2s of silence", at)
		}
	}
	sent := 0
	for _, p := range fleet {
		_, page := get(t, p.admin()+"/metrics", "")
		found := regexp.MustCompile(`(?m)^headgate_upstream_sent_total\{route="/"\} (\d+)$`).FindStringSubmatch(page)
		if found == nil {
			t.Fatalf("no headgate_upstream_sent_total in\n%s", page)
		}
		n, err := strconv.Atoi(found[1])
		if err != nil {
			t.Fatal(err)
		}
		sent += n
	}
	if heard := 1 + len(upstream.at); heard != 1+len(fleet)*each || sent != heard {
		t.Errorf("the upstream heard %d and the metric says %d, want %d", heard, sent, 1+len(fleet)*each)
	}
}
