package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/gatetest"
	"github.com/headgate/headgate/cmd/headgate/internal/gateway"
)

const wait = 10 * time.Second // for what happens at once on a machine that is not busy

// serve runs a gateway whose configuration is text, with UPSTREAM, ACME and GLOBEX replaced, in front of upstream.
func serve(t *testing.T, text string, store headgate.Store, upstream http.HandlerFunc) string {
	t.Helper()
	up := httptest.NewServer(upstream)
	t.Cleanup(up.Close)
	return serveTo(t, text, store, up.URL)
}

func serveTo(t *testing.T, text string, store headgate.Store, upstream string) string {
	t.Helper()
	if store == nil {
		store = memory(t)
	}
	front := httptest.NewServer(newGateway(t, parse(t, text, upstream), gateway.Options{Store: store}))
	t.Cleanup(front.Close)
	return front.URL
}

// parse reads a configuration with UPSTREAM, ACME and GLOBEX replaced.
func parse(t testing.TB, text, upstream string) *config.Config {
	t.Helper()
	text = strings.NewReplacer("UPSTREAM", upstream, "ACME", gatetest.Digest("acme-key"), "GLOBEX", gatetest.Digest("globex-key")).Replace(text)
	c, err := config.Parse("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const file = `
plans: {free: {limits: ["5/hour"]}, pro: {limits: ["1000/hour"]}}
tenants:
  - {name: acme, plan: pro, api_key_sha256: "ACME"}
  - {name: globex, plan: free, api_key_sha256: "GLOBEX"}
routes:
  - {path: /, upstream: "UPSTREAM"}
  - {path: /only, upstream: "UPSTREAM", tenants: [acme]}
`

// do sends a request and returns its response with the body read.
func do(t *testing.T, method, url string, edit ...func(*http.Request)) (*http.Response, string) {
	t.Helper()
	return gatetest.Caller{Timeout: wait}.Send(t, method, url, nil, edit...)
}

func key(k string) func(*http.Request) { return func(r *http.Request) { r.Header.Set("X-API-Key", k) } }

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// wantProblem checks that the gateway itself answered, with this status.
func wantProblem(t *testing.T, resp *http.Response, body string, status int) {
	t.Helper()
	var p struct {
		Type, Title, Detail string
		Status              int
	}
	if err := json.Unmarshal([]byte(body), &p); err != nil || p.Status != status || p.Type == "" || p.Title == "" || p.Detail == "" {
		t.Errorf("body %q (%v), want a problem with status %d", body, err, status)
	}
	if resp.StatusCode != status || resp.Header.Get("Content-Type") != "application/problem+json" || resp.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("status %d, header %v; want %d, problem+json, no-store", resp.StatusCode, resp.Header, status)
	}
}

func hello(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }

func TestStatuses(t *testing.T) {
	url := serve(t, file, nil, hello)
	tests := []struct {
		path, key string
		status    int
	}{
		{"/", "acme-key", 200}, {"/only/x", "acme-key", 200}, {"/only", "globex-key", 403}, {"/", "", 401}, {"/", "wrong", 401},
		{"/x/%2e%2e/only", "globex-key", 400}, {"//only", "globex-key", 400}, {"/%2fonly", "globex-key", 400},
	}
	for _, tt := range tests {
		resp, body := do(t, "GET", url+tt.path, key(tt.key))
		if tt.status == 200 {
			if resp.StatusCode != 200 || body != "hello" {
				t.Errorf("%s %s: %d %q, want 200", tt.path, tt.key, resp.StatusCode, body)
			}
			continue
		}
		wantProblem(t, resp, body, tt.status)
		if tt.status == 401 && (resp.Header.Get("WWW-Authenticate") == "" || strings.Contains(body, "wrong")) {
			t.Errorf("%s %s: header %v body %s, want WWW-Authenticate and no key", tt.path, tt.key, resp.Header, body)
		}
	}
}

func TestUnknownRoute(t *testing.T) {
	url := serve(t, strings.ReplaceAll(file, "path: /,", "path: /api,"), nil, hello)
	for _, path := range []string{"/", "/apix", "/other"} {
		resp, body := do(t, "GET", url+path, key("acme-key"))
		wantProblem(t, resp, body, 404)
	}
}

func TestDenied(t *testing.T) {
	url := serve(t, file, nil, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("RateLimit", `"theirs";r=1`)
		w.Header().Set("RateLimit-Policy", `"theirs";q=1`)
		hello(w, r)
	})
	for i := range 5 {
		resp, _ := do(t, "GET", url, key("globex-key"))
		if resp.StatusCode != 200 {
			t.Fatalf("request %d: %d, want 200", i+1, resp.StatusCode)
		}
		if got := resp.Header.Values("RateLimit-Policy"); len(got) != 1 || got[0] != `"free/hour";q=5;w=3600` {
			t.Errorf("RateLimit-Policy %q, want the gateway's alone", got)
		}
		if got := resp.Header.Values("RateLimit"); len(got) != 1 || !strings.HasPrefix(got[0], `"free/hour";r=`+strconv.Itoa(4-i)) {
			t.Errorf("RateLimit %q", got)
		}
	}
	resp, body := do(t, "GET", url, key("globex-key"))
	wantProblem(t, resp, body, 429)
	if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err != nil || n < 1 || n > 720 {
		t.Errorf("Retry-After %q, want 1 to 720", resp.Header.Get("Retry-After"))
	}
	if !strings.Contains(body, `"violated-policies":["free/hour"]`) {
		t.Errorf("body %s, want the limit's name", body)
	}
	if resp, _ := do(t, "GET", url, key("acme-key")); resp.StatusCode != 200 {
		t.Errorf("another tenant: %d, want 200", resp.StatusCode)
	}
}

// Plan, limits and total are one decision: what one of them denies, none of them is charged for.
func TestAllOrNothing(t *testing.T) {
	url := serve(t, `
plans: {p: {limits: ["4/hour"]}}
tenants:
  - {name: acme, plan: p, api_key_sha256: "ACME"}
  - {name: globex, plan: p, api_key_sha256: "GLOBEX"}
routes:
  - {path: /, upstream: "UPSTREAM"}
  - {path: /a, upstream: "UPSTREAM", limits: ["2/hour"], total: ["3/hour"]}
  - {path: /free, upstream: "UPSTREAM", plan: false}
`, nil, hello)
	steps := []struct {
		path, key string
		status    int
	}{
		{"/a", "acme-key", 200}, {"/a", "acme-key", 200}, // the route's limit of acme is used up
		{"/a", "acme-key", 429}, {"/a", "acme-key", 429}, // and charges neither its plan nor the total
		{"/a", "globex-key", 200}, {"/a", "globex-key", 429}, // the total is used up
		{"/", "acme-key", 200}, {"/", "acme-key", 200}, {"/", "acme-key", 429}, // 4 of acme's plan
		{"/", "globex-key", 200}, {"/", "globex-key", 200}, {"/", "globex-key", 200}, {"/", "globex-key", 429},
		{"/free", "acme-key", 200}, {"/free", "globex-key", 200},
	}
	for i, s := range steps {
		if resp, _ := do(t, "GET", url+s.path, key(s.key)); resp.StatusCode != s.status {
			t.Errorf("step %d, %s on %s: %d, want %d", i+1, s.key, s.path, resp.StatusCode, s.status)
		}
	}
}

func TestAnonymousCallersShareOneBucket(t *testing.T) {
	url := serve(t, `
identity: {anonymous: share, anonymous_plan: p}
plans: {p: {limits: ["2/hour"]}}
tenants: [{name: acme, plan: p, api_key_sha256: "ACME"}]
routes:
  - {path: /, upstream: "UPSTREAM"}
  - {path: /only, upstream: "UPSTREAM", tenants: [acme]}
`, nil, hello)
	for i, want := range []int{200, 200, 429} {
		if resp, _ := do(t, "GET", url, header("X-Forwarded-For", "192.0.2."+strconv.Itoa(i))); resp.StatusCode != want {
			t.Errorf("request %d: %d, want %d", i+1, resp.StatusCode, want)
		}
	}
	resp, body := do(t, "GET", url+"/only")
	wantProblem(t, resp, body, 401)
	resp, body = do(t, "GET", url, key("wrong"))
	wantProblem(t, resp, body, 401)
	if resp, _ := do(t, "GET", url, key("acme-key")); resp.StatusCode != 200 {
		t.Errorf("tenant: %d, want 200", resp.StatusCode)
	}
}

func TestPreflight(t *testing.T) {
	url := serve(t, strings.ReplaceAll(file, "tenants: [acme]}", "preflight: deny}"), nil, hello)
	preflight := func(r *http.Request) {
		r.Header.Set("Origin", "https://example.com")
		r.Header.Set("Access-Control-Request-Method", "GET")
	}
	if resp, _ := do(t, "OPTIONS", url, preflight); resp.StatusCode != 200 || resp.Header.Get("RateLimit") != "" {
		t.Errorf("preflight %d %v, want 200 and no decision", resp.StatusCode, resp.Header)
	}
	resp, body := do(t, "OPTIONS", url+"/only", preflight)
	wantProblem(t, resp, body, 403)
	resp, body = do(t, "OPTIONS", url)
	wantProblem(t, resp, body, 401)
}

func TestWhatTheUpstreamSees(t *testing.T) {
	seen := make(chan *http.Request, 1)
	upstream := func(w http.ResponseWriter, r *http.Request) { seen <- r.Clone(context.Background()); hello(w, r) }
	forged := func(r *http.Request) {
		for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Forwarded", "X-Real-IP"} {
			r.Header.Set(name, "forged")
		}
		r.Header.Set("Connection", "X-Hop")
		r.Header.Set("X-Hop", "1")
		r.Header.Set("X-End", "2")
		r.Header.Set("X-Headgate-Tenant", "globex")
	}
	url := serve(t, file, nil, upstream)
	do(t, "GET", url+"/a%20b/c%2Fd?x=1;y=%zz", key("acme-key"), forged)
	r := <-seen
	if got := r.RequestURI; got != "/a%20b/c%2Fd?x=1;y=%zz" {
		t.Errorf("URI %s, want it as it came", got)
	}
	for name, want := range map[string]string{
		"X-API-Key": "", "X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "http", "X-Forwarded-Host": strings.TrimPrefix(url, "http://"),
		"Forwarded": "", "X-Real-IP": "", "X-Hop": "", "Connection": "", "X-End": "2", "X-Headgate-Tenant": "",
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}

	url = serve(t, "identity: {trusted_proxies: [127.0.0.1], api_key: {forward: true}}"+file, nil, upstream)
	do(t, "GET", url, key("acme-key"), forged)
	r = <-seen
	for name, want := range map[string]string{
		"X-API-Key": "acme-key", "X-Forwarded-For": "forged, 127.0.0.1", "X-Forwarded-Host": "forged", "Forwarded": "forged", "X-Real-IP": "forged",
		"X-Headgate-Tenant": "",
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("behind a trusted proxy, %s: %q, want %q", name, got, want)
		}
	}
}

func TestUpstreamDown(t *testing.T) {
	url := serveTo(t, file, nil, "http://"+gatetest.FreeAddr(t))
	resp, body := do(t, "GET", url, key("acme-key"))
	wantProblem(t, resp, body, 502)
}

func TestUpstreamThatSpeaksNoHTTP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = bufio.NewReader(c).ReadString('\n')
			_, _ = io.WriteString(c, "220 ready\r\n")
			_ = c.Close()
		}
	}()
	url := serveTo(t, file, nil, "http://"+l.Addr().String())
	resp, body := do(t, "GET", url, key("acme-key"))
	wantProblem(t, resp, body, 502)
}

func TestUpstreamSlow(t *testing.T) {
	release := make(chan struct{})
	text := strings.Replace(file, `path: /, upstream: "UPSTREAM"`, `path: /, upstream: "UPSTREAM", timeout: 50ms`, 1)
	url := serve(t, text, nil, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	resp, body := do(t, "GET", url, key("acme-key"))
	wantProblem(t, resp, body, 504)
}

// downStore is a store that cannot answer.
type downStore struct{}

var errDown = errors.New("connection refused")

func (downStore) Take(context.Context, headgate.Charge, ...headgate.Charge) (headgate.Decision, error) {
	return headgate.Decision{}, errDown
}
func (downStore) Refund(context.Context, headgate.Charge, ...headgate.Charge) error { return errDown }
func (downStore) Reset(context.Context, headgate.Charge, ...headgate.Charge) error  { return errDown }

func TestStoreDown(t *testing.T) {
	url := serve(t, `
plans: {p: {limits: ["2/hour"]}}
tenants: [{name: acme, plan: p, api_key_sha256: "ACME"}]
routes:
  - {path: /closed, upstream: "UPSTREAM", on_store_error: closed}
  - {path: /open, upstream: "UPSTREAM", on_store_error: open}
  - {path: /local, upstream: "UPSTREAM", on_store_error: local}
`, downStore{}, hello)
	resp, body := do(t, "GET", url+"/closed", key("acme-key"))
	wantProblem(t, resp, body, 503)
	if got := resp.Header.Get("Retry-After"); got != "1" {
		t.Errorf("Retry-After %q, want 1", got)
	}
	for i := range 4 {
		if resp, _ := do(t, "GET", url+"/open", key("acme-key")); resp.StatusCode != 200 {
			t.Errorf("open: %d, want 200", resp.StatusCode)
		}
		want := 200
		if i >= 2 {
			want = 429
		}
		if resp, _ := do(t, "GET", url+"/local", key("acme-key")); resp.StatusCode != want {
			t.Errorf("local, request %d: %d, want %d", i+1, resp.StatusCode, want)
		}
	}
}
