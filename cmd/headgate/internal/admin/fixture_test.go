package admin_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/admin"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/gatetest"
	"github.com/headgate/headgate/cmd/headgate/internal/gateway"
)

// file is a configuration; ACME and GLOBEX are the digests of the API keys "acme-key" and "globex-key", TOKEN that of "secret-token".
const file = `
admin: 127.0.0.1:0
plans: {pro: {limits: ["3/hour fixed-window"]}, free: {limits: ["1/hour fixed-window"]}}
tenants:
  - {name: acme, plan: pro, api_key_sha256: "ACME"}
  - {name: globex, plan: free, api_key_sha256: "GLOBEX"}
routes:
  - {path: /api, upstream: "http://127.0.0.1:1"}
  - {path: /api/only, upstream: "http://127.0.0.1:1", tenants: [acme], limits: ["2/hour"], total: ["100/hour"]}
  - {path: /api/free, upstream: "http://127.0.0.1:1", plan: false}
`

func parse(t testing.TB, text string) *config.Config {
	t.Helper()
	text = strings.NewReplacer("ACME", gatetest.Digest("acme-key"), "GLOBEX", gatetest.Digest("globex-key"), "TOKEN", gatetest.Digest("secret-token")).Replace(text)
	c, err := config.Parse("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A service is an API behind a listener of its own.
type service struct {
	*httptest.Server
	api *admin.API
	gw  *gateway.Gateway
}

// start runs the API of a configuration. store nil = in memory.
func start(t testing.TB, text string, store headgate.Store, edit ...func(*admin.APIOptions)) *service {
	t.Helper()
	c := parse(t, text)
	if store == nil {
		memory, err := headgate.NewMemory(headgate.MemoryConfig{})
		if err != nil {
			t.Fatal(err)
		}
		store = memory
	}
	gw, err := gateway.New(c, gateway.Options{Store: store, Timeout: gatetest.Patience, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	o := admin.APIOptions{Gate: gw, Store: store, Timeout: gatetest.Patience, Loopback: true}
	for _, f := range edit {
		f(&o)
	}
	api, err := admin.NewAPI(c, o)
	if err != nil {
		t.Fatal(err)
	}
	s := &service{Server: httptest.NewServer(api), api: api, gw: gw}
	t.Cleanup(func() { s.Close(); gw.Close() })
	return s
}

// An answer is a response with its body read.
type answer struct {
	*http.Response
	body string
}

// decode reads the body.
func (a *answer) decode(t testing.TB, to any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), to); err != nil {
		t.Fatalf("body %q: %v", a.body, err)
	}
}

// post sends a request with a body of JSON, and holds the pair of it and its answer to the OpenAPI document.
func (s *service) post(t testing.TB, path, body string, edit ...func(*http.Request)) *answer {
	t.Helper()
	return s.send(t, http.MethodPost, path, body, append([]func(*http.Request){header("Content-Type", "application/json")}, edit...)...)
}

func (s *service) send(t testing.TB, method, path, body string, edit ...func(*http.Request)) *answer {
	t.Helper()
	a := send(t, method, s.URL+path, body, edit...)
	checkPair(t, a, body)
	return a
}

// send sends a request to whatever listens.
func send(t testing.TB, method, url, body string, edit ...func(*http.Request)) *answer {
	t.Helper()
	resp, text := gatetest.Caller{}.Send(t, method, url, strings.NewReader(body), edit...)
	return &answer{resp, text}
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// wantProblem checks that the answer is a problem document with this status.
func wantProblem(t testing.TB, a *answer, status int) {
	t.Helper()
	var p struct {
		Type, Title, Detail string
		Status              int
	}
	a.decode(t, &p)
	if a.StatusCode != status || p.Status != status || p.Type == "" || p.Title == "" || p.Detail == "" ||
		a.Header.Get("Content-Type") != "application/problem+json" || a.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d %v %s, want a problem with status %d", a.StatusCode, a.Header, a.body, status)
	}
}

// decodeBody reads a response, where t must not end: on another goroutine than the test's own.
func decodeBody(t testing.TB, resp *http.Response, to any) bool {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(body, to)
	}
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("%d %s (%v), want 200", resp.StatusCode, body, err)
		return false
	}
	return true
}
