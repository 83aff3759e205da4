package gateway_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/gatetest"
	"github.com/headgate/headgate/cmd/headgate/internal/gateway"
)

// An issuer signs tokens, and shows its key.
type issuer struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	url  string
	away atomic.Bool
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k", Use: "sig"}}})
	if err != nil {
		t.Fatal(err)
	}
	is := &issuer{t: t, key: key}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if is.away.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = w.Write(set)
	}))
	t.Cleanup(server.Close)
	is.url = server.URL
	return is
}

// bear puts a token of these claims into a request.
func (is *issuer) bear(claims map[string]any) func(*http.Request) {
	is.t.Helper()
	all := map[string]any{"iss": "https://idp", "aud": "api", "exp": time.Now().Add(time.Hour).Unix()}
	for name, value := range claims {
		all[name] = value
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: is.key, KeyID: "k"}}, nil)
	if err != nil {
		is.t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(all).Serialize()
	if err != nil {
		is.t.Fatal(err)
	}
	return header("Authorization", "Bearer "+token)
}

func (is *issuer) file(more string) string {
	return `
identity:
  jwt: {jwks_url: "` + is.url + `", issuer: "https://idp", audience: api, tenant_claim: org, plan_claim: plan` + more + `}
plans: {free: {limits: ["2/hour"]}, pro: {limits: ["3/hour"]}}
tenants: [{name: acme, plan: pro, api_key_sha256: "ACME"}]
routes:
  - {path: /, upstream: "UPSTREAM"}
  - {path: /only, upstream: "UPSTREAM", tenants: [acme]}
`
}

// A tenant has one budget, however it shows who it is; one that the file does not list has that of its plan.
func TestTokensAndPlans(t *testing.T) {
	is := newIssuer(t)
	url := serve(t, is.file(""), nil, hello)
	acme := is.bear(map[string]any{"org": "acme", "plan": "free"})
	newcomer := is.bear(map[string]any{"org": "new", "plan": "free"})
	steps := []struct {
		who    func(*http.Request)
		path   string
		status int
	}{
		{acme, "/", 200}, {key("acme-key"), "/", 200}, {acme, "/only", 200}, {acme, "/", 429}, {key("acme-key"), "/", 429},
		{newcomer, "/only", 403}, {newcomer, "/", 200}, {newcomer, "/", 200}, {newcomer, "/", 429},
		{is.bear(map[string]any{"org": "other", "plan": "free"}), "/", 200},
		{is.bear(map[string]any{"org": "other"}), "/", 403},
		{is.bear(map[string]any{"org": "acme", "exp": 1}), "/", 401},
		{header("X-Tenant", "acme"), "/", 401},
	}
	for i, s := range steps {
		resp, body := do(t, "GET", url+s.path, s.who, header("X-Headgate-Tenant", "acme"))
		if s.status == 200 && resp.StatusCode == 200 {
			continue
		}
		wantProblem(t, resp, body, s.status)
		challenges := strings.Join(resp.Header.Values("WWW-Authenticate"), ", ")
		if s.status == 401 && (!strings.Contains(challenges, "APIKey ") || !strings.Contains(challenges, "Bearer realm=")) {
			t.Errorf("step %d: WWW-Authenticate %q, want both ways", i+1, challenges)
		}
		if t.Failed() {
			t.Fatalf("step %d", i+1)
		}
	}
}

func TestWhetherTheUpstreamSeesTheToken(t *testing.T) {
	is := newIssuer(t)
	for more, want := range map[string]bool{"": true, ", forward: false": false} {
		seen := make(chan string, 1)
		url := serve(t, is.file(more), nil, func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header.Get("Authorization") })
		do(t, "GET", url, is.bear(map[string]any{"org": "acme"}))
		if got := <-seen; strings.HasPrefix(got, "Bearer ey") != want || !want && got != "" {
			t.Errorf("%q: the upstream saw %q", more, got)
		}
	}
}

// Whose token cannot be verified is not told that it is wrong.
func TestIssuerAway(t *testing.T) {
	is := newIssuer(t)
	is.away.Store(true)
	url := serve(t, is.file(""), nil, hello)
	resp, body := do(t, "GET", url, is.bear(map[string]any{"org": "acme"}))
	wantProblem(t, resp, body, 503)
	if resp.Header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After %q, want 1", resp.Header.Get("Retry-After"))
	}
	if resp, _ := do(t, "GET", url, key("acme-key")); resp.StatusCode != 200 {
		t.Errorf("an API key: %d, want 200", resp.StatusCode)
	}
}

// Neither a token nor a name that could be somebody's address is in the log, at its most talkative, or in a key.
func TestNoTokenInTheLog(t *testing.T) {
	is := newIssuer(t)
	var log gatetest.Log
	store := &keysSeen{Store: memory(t)}
	g := newGateway(t, parse(t, is.file(""), "http://127.0.0.1:1"), gateway.Options{
		Store: store, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	for _, claims := range []map[string]any{{"org": "acme"}, {"org": "user@example.com", "plan": "free"}, {"org": "acme", "exp": 1}} {
		r := httptest.NewRequest("GET", "/", nil)
		is.bear(claims)(r)
		g.ServeHTTP(httptest.NewRecorder(), r)
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		for _, text := range append(store.all(), log.String()) {
			if strings.Contains(text, token) || strings.Contains(text, "example.com") {
				t.Errorf("it is in %q", text)
			}
		}
	}
	if len(store.all()) == 0 || !strings.Contains(log.String(), "tenant=acme") {
		t.Errorf("nothing to look at: keys %q, log %s", store.all(), log.String())
	}
}

// keysSeen is a store that notes the keys that it is asked about.
type keysSeen struct {
	headgate.Store
	mu   sync.Mutex
	keys []string
}

// Take implements [headgate.Store].
func (s *keysSeen) Take(ctx context.Context, first headgate.Charge, more ...headgate.Charge) (headgate.Decision, error) {
	s.mu.Lock()
	s.keys = append(s.keys, first.Key)
	s.mu.Unlock()
	return s.Store.Take(ctx, first, more...)
}

func (s *keysSeen) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.keys)
}
