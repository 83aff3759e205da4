package admin_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/admin"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/gateway"
)

// patience is how long a test waits for what happens at once on a machine that is not busy.
const patience = 30 * time.Second

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
	digest := func(key string) string { sum := sha256.Sum256([]byte(key)); return hex.EncodeToString(sum[:]) }
	text = strings.NewReplacer("ACME", digest("acme-key"), "GLOBEX", digest("globex-key"), "TOKEN", digest("secret-token")).Replace(text)
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
	gw, err := gateway.New(c, gateway.Options{Store: store, Timeout: patience, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	o := admin.APIOptions{Gate: gw, Store: store, Timeout: patience, Loopback: true}
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
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range edit {
		f(r)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return &answer{resp, string(text)}
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
