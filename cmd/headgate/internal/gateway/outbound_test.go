package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// partner is an upstream that asks for a pause where the path says for how long, in seconds, and counts what it hears.
type partner struct{ heard atomic.Int64 }

func (p *partner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.heard.Add(1)
	if seconds, asked := strings.CutPrefix(r.URL.Path, "/busy/"); asked {
		w.Header().Set("Retry-After", seconds)
		w.WriteHeader(http.StatusTooManyRequests)
	}
}

func outboundFile(outbound string) string {
	return `
plans: {p: {limits: ["5/hour fixed-window"]}}
tenants:
  - {name: acme, plan: p, api_key_sha256: "ACME"}
  - {name: globex, plan: p, api_key_sha256: "GLOBEX"}
routes: [{path: /, upstream: "UPSTREAM", outbound: ` + outbound + `}]
`
}

// While the upstream asks for a pause, callers of every gateway get 503, are charged nothing, and the upstream hears nothing.
func TestOutboundPause(t *testing.T) {
	for name, all := range map[string]bool{"route": true, "tenant": false} {
		store := memory(t)
		var p partner
		up := httptest.NewServer(&p)
		defer up.Close()
		file := strings.Replace(outboundFile("{max_pause: 20m, key: "+name+"}"), "path: /,", "path: /, plan: false,", 1)
		one, two := serveTo(t, file, store, up.URL), serveTo(t, file, store, up.URL)
		if resp, _ := do(t, "GET", one+"/busy/3000", key("acme-key")); resp.StatusCode != 429 {
			t.Errorf("%s: %d, want the upstream's 429", name, resp.StatusCode)
		}
		for _, url := range []string{one, two} {
			resp, body := do(t, "GET", url, key("acme-key"))
			wantProblem(t, resp, body, 503)
			if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err != nil || n <= 1100 || n > 1200 {
				t.Errorf("%s: Retry-After %q, want up to 1200", name, resp.Header.Get("Retry-After"))
			}
			if resp, _ := do(t, "GET", url, key("globex-key")); (resp.StatusCode == 503) != all {
				t.Errorf("%s: another tenant: %d", name, resp.StatusCode)
			}
		}
		want := int64(1)
		if !all {
			want = 3
		}
		if got := p.heard.Load(); got != want {
			t.Errorf("%s: the upstream heard %d, want %d", name, got, want)
		}
	}
}

// What is held back on the way out is given back its charges: a tenant of 5 an hour gets all of them after a pause.
func TestOutboundChargesNothingForWhatIsNotSent(t *testing.T) {
	var p partner
	url := serve(t, outboundFile("{}"), nil, p.ServeHTTP)
	statuses := func(path string, n int) map[int]int {
		got := make(map[int]int)
		for range n {
			resp, _ := do(t, "GET", url+path, key("acme-key"))
			got[resp.StatusCode]++
		}
		return got
	}
	if got := statuses("/busy/1", 1); got[429] != 1 {
		t.Errorf("statuses %v", got)
	}
	for p.heard.Load() == 1 {
		statuses("/", 1) // 503, as often as it takes
	}
	if got := statuses("/", 10); got[200] != 3 || got[429] != 7 {
		t.Errorf("after the pause: statuses %v, want 3 of 200 and 7 of 429", got)
	}
}

// Requests wait for room under outbound.limits, which are charged besides the plan, and beyond max_wait they get 429.
func TestOutboundLimits(t *testing.T) {
	var p partner
	url := serve(t, outboundFile(`{max_wait: 10s, limits: ["2/s burst 1", "3/day fixed-window"]}`), nil, p.ServeHTTP)
	var wg sync.WaitGroup
	var sent atomic.Int64
	for i := range 5 {
		wg.Go(func() {
			who := []string{"acme-key", "globex-key"}[i%2]
			resp, body := do(t, "GET", url, key(who))
			if resp.StatusCode == 200 {
				sent.Add(1)
				return
			}
			wantProblem(t, resp, body, 429)
			if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err != nil || n < 60 {
				t.Errorf("Retry-After %q, want most of a day", resp.Header.Get("Retry-After"))
			}
		})
	}
	wg.Wait()
	if sent.Load() != 3 || p.heard.Load() != 3 {
		t.Errorf("%d were sent, %d heard; want 3", sent.Load(), p.heard.Load())
	}
}

// A request without a body is sent again where that is asked for, once the pause is over.
func TestOutboundRetries(t *testing.T) {
	var heard atomic.Int64
	url := serve(t, outboundFile("{max_wait: 10s, retries: 1}"), nil, func(w http.ResponseWriter, r *http.Request) {
		if heard.Add(1)%2 == 1 {
			w.Header().Set("Retry-After-Ms", "50")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	if resp, _ := do(t, "GET", url, key("acme-key")); resp.StatusCode != 200 || heard.Load() != 2 {
		t.Errorf("GET: %d after %d, want 200 after 2", resp.StatusCode, heard.Load())
	}
	if resp, _ := do(t, "POST", url, key("acme-key")); resp.StatusCode != 503 || heard.Load() != 3 {
		t.Errorf("POST: %d after %d, want 503 after 3", resp.StatusCode, heard.Load())
	}
}
