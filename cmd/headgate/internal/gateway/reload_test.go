package gateway_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/gateway"
)

// A new configuration is in force with the next request; what was used stays used.
func TestReload(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(hello))
	defer up.Close()
	g := newGateway(t, parse(t, file, up.URL), gateway.Options{Store: memory(t)})
	front := httptest.NewServer(g)
	defer front.Close()
	want := func(k string, status int) {
		t.Helper()
		if resp, body := do(t, "GET", front.URL, key(k)); resp.StatusCode != status {
			t.Errorf("%s: %d %s, want %d", k, resp.StatusCode, body, status)
		}
	}
	reload := func(from, to string) {
		t.Helper()
		if err := g.Reload(parse(t, strings.Replace(file, from, to, 1), up.URL)); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 {
		want("globex-key", 200)
	}
	want("globex-key", 429)
	reload("5/hour", "6/hour") // a raise is in force at once, and five of it are used
	want("globex-key", 200)
	want("globex-key", 429)
	reload("plan: free", "plan: pro")
	want("globex-key", 200)
	reload("", "") // back to what it was: still used up
	want("globex-key", 429)
	reload("globex", "initech") // the key is the same, the tenant another
	want("globex-key", 200)
	reload(`api_key_sha256: "GLOBEX"`, `api_key_sha256: "`+strings.Repeat("0", 64)+`"`)
	want("globex-key", 401)
}

// A request is served under the configuration under which it came, to its end.
func TestReloadWhileRequestsAreUnderWay(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		select {
		case <-release:
			_, _ = io.WriteString(w, "first")
		case <-r.Context().Done():
		}
	}))
	defer first.Close()
	second := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "second") }))
	defer second.Close()
	g := newGateway(t, parse(t, file, first.URL), gateway.Options{Store: memory(t)})
	front := httptest.NewServer(g)
	defer front.Close()
	under := make(chan string, 1)
	go func() {
		resp, err := http.DefaultClient.Do(mustRequest(t, front.URL))
		if err != nil {
			under <- err.Error()
			return
		}
		defer func() { _ = resp.Body.Close() }()
		body, _ := io.ReadAll(resp.Body)
		under <- string(body)
	}()
	<-arrived
	if err := g.Reload(parse(t, file, second.URL)); err != nil {
		t.Fatal(err)
	}
	if _, body := do(t, "GET", front.URL, key("acme-key")); body != "second" {
		t.Errorf("after the reload: %q, want second", body)
	}
	close(release)
	if got := <-under; got != "first" {
		t.Errorf("under way: %q, want first", got)
	}
}

func mustRequest(t *testing.T, url string) *http.Request {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	key("acme-key")(r)
	return r
}

// No request meets half of a configuration: tenant, plan and route are those of one of them.
func TestReloadIsAtomic(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(hello))
	defer up.Close()
	text := func(name string) string {
		return `
plans: {` + name + `: {limits: ["1000000/hour"]}}
tenants: [{name: ` + name + `, plan: ` + name + `, api_key_sha256: "ACME"}]
routes: [{path: /, upstream: "UPSTREAM", tenants: [` + name + `], limits: [{name: ` + name + `-route, limit: "1000000/hour"}]}]`
	}
	g := newGateway(t, parse(t, text("red"), up.URL), gateway.Options{Store: memory(t)})
	stop := make(chan struct{})
	var askers sync.WaitGroup
	for range 4 {
		askers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				w := httptest.NewRecorder()
				r := httptest.NewRequest("GET", "/", nil)
				key("acme-key")(r)
				g.ServeHTTP(w, r)
				fields := w.Header().Get("RateLimit-Policy")
				if w.Code != 200 || strings.Contains(fields, "red") == strings.Contains(fields, "blue") {
					t.Errorf("%d %s, want the limits of one configuration", w.Code, fields)
					return
				}
			}
		})
	}
	for i := range 200 {
		if err := g.Reload(parse(t, text([]string{"blue", "red"}[i%2]), up.URL)); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	askers.Wait()
}

// After an error nothing has changed.
func TestReloadThatFails(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(hello))
	defer up.Close()
	g := newGateway(t, parse(t, file, up.URL), gateway.Options{Store: memory(t)})
	next := parse(t, `
identity: {jwt: {jwks_file: none.json, issuer: i, audience: a, tenant_claim: t}}
plans: {free: {limits: ["5/hour"]}}
tenants: [{name: acme, plan: free}]
routes: [{path: /, upstream: "UPSTREAM"}]`, up.URL)
	if err := g.Reload(next); err == nil || !strings.Contains(err.Error(), "none.json") {
		t.Errorf("%v, want the name of the file", err)
	}
	front := httptest.NewServer(g)
	defer front.Close()
	if resp, _ := do(t, "GET", front.URL, key("acme-key")); resp.StatusCode != 200 {
		t.Errorf("%d, want 200", resp.StatusCode)
	}
}
