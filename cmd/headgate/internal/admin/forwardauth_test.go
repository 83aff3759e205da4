package admin_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"go.yaml.in/yaml/v4"
)

// A proxy that asks about a request, in its dialect: what it adds to the caller's headers.
func nginx(method, uri string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Set("X-Original-URI", uri)
		r.Header.Set("X-Original-Method", method)
	}
}

func traefik(method, uri string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Set("X-Forwarded-Uri", uri)
		r.Header.Set("X-Forwarded-Method", method)
		r.Header.Set("X-Forwarded-Host", "example.com")
		r.Header.Set("X-Forwarded-Proto", "https")
		r.Header.Set("X-Forwarded-For", "203.0.113.9")
	}
}

func ingress(method, uri string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Set("X-Original-URL", "https://example.com"+uri)
		r.Header.Set("X-Original-Method", method)
	}
}

func TestForwardAuth(t *testing.T) {
	for name, proxy := range map[string]func(method, uri string) func(*http.Request){"nginx": nginx, "traefik": traefik, "ingress": ingress} {
		s := start(t, file, nil)
		ask := func(uri, key string, more ...func(*http.Request)) *answer {
			t.Helper()
			return s.send(t, "GET", "/v1/forward-auth", "", append([]func(*http.Request){proxy("POST", uri), header("X-API-Key", key)}, more...)...)
		}
		for i := range 3 {
			a := ask("/api/x?y=1", "acme-key", header("X-Headgate-Tenant", "globex"))
			if a.StatusCode != 200 || a.body != "" || a.Header.Get("X-Headgate-Tenant") != "acme" ||
				a.Header.Get("RateLimit-Policy") != `"pro/hour";q=3;w=3600` || !strings.HasPrefix(a.Header.Get("RateLimit"), `"pro/hour";r=`+strconv.Itoa(2-i)) {
				t.Errorf("%s, request %d: %d %v %s", name, i+1, a.StatusCode, a.Header, a.body)
			}
		}
		a := ask("/api/x", "acme-key")
		wantProblem(t, a, 429)
		if n, err := strconv.Atoi(a.Header.Get("Retry-After")); err != nil || n < 1 || a.Header.Get("RateLimit") == "" {
			t.Errorf("%s, denied: %v", name, a.Header)
		}
		if a := ask("/api/free", "acme-key"); a.StatusCode != 200 || a.Header.Get("RateLimit") != "" || a.Header.Get("X-Headgate-Tenant") != "acme" {
			t.Errorf("%s, unlimited: %d %v", name, a.StatusCode, a.Header)
		}
		for _, tt := range []struct {
			uri, key string
			status   int
		}{
			{"/api", "", 401}, {"/api", "wrong", 401}, {"/api/only", "globex-key", 403}, {"/", "globex-key", 404}, {"/apix", "globex-key", 404},
			{"/api/x/../only", "globex-key", 400}, {"/api/x/%2e%2e/only", "globex-key", 400}, {"//api/only", "globex-key", 400},
			{"/api%2fonly", "globex-key", 400}, {"/api/free;/../only", "globex-key", 400}, {"/api/%", "globex-key", 400},
		} {
			a := ask(tt.uri, tt.key)
			wantProblem(t, a, tt.status)
			plain := s.send(t, "GET", "/v1/forward-auth?deny=403", "", proxy("GET", tt.uri), header("X-API-Key", tt.key))
			want := 403
			if tt.status == 401 {
				want = 401
			}
			// A fault in what the proxy says is a matter for its operator.
			if plain.StatusCode != want || plain.Header.Get("X-Headgate-Status") != strconv.Itoa(tt.status) {
				t.Errorf("%s, deny=403 on %s: %d %v, want %d for %d", name, tt.uri, plain.StatusCode, plain.Header, want, tt.status)
			}
		}
		a = s.send(t, "GET", "/v1/forward-auth?deny=403", "", proxy("GET", "/api"), header("X-API-Key", "acme-key"))
		if a.StatusCode != 403 || a.Header.Get("X-Headgate-Status") != "429" || a.Header.Get("Retry-After") == "" || a.Header.Get("RateLimit") == "" {
			t.Errorf("%s, deny=403: %d %v", name, a.StatusCode, a.Header)
		}
	}
}

// Any method may ask, as some proxies use the caller's.
func TestForwardAuthMethods(t *testing.T) {
	s := start(t, strings.ReplaceAll(file, "3/hour", "100/hour"), nil)
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
		if a := s.send(t, method, "/v1/forward-auth", "", traefik(method, "/api"), header("X-API-Key", "acme-key")); a.StatusCode != 200 {
			t.Errorf("%s: %d %s", method, a.StatusCode, a.body)
		}
	}
	if a := s.send(t, "TRACE", "/v1/forward-auth", ""); a.StatusCode != 405 {
		t.Errorf("TRACE: %d", a.StatusCode)
	}
}

// What a caller writes into headers that its proxy does not set does not change what is decided.
func TestForwardAuthIsNotFooled(t *testing.T) {
	s := start(t, file, nil)
	twice := func(name, a, b string) func(*http.Request) {
		return func(r *http.Request) { r.Header[name] = []string{a, b} }
	}
	preflight := func(r *http.Request) {
		r.Header.Set("Origin", "https://example.com")
		r.Header.Set("Access-Control-Request-Method", "GET")
	}
	tests := []struct {
		what   string
		edit   []func(*http.Request)
		status int
	}{
		{"no description", nil, 400},
		{"an empty one", []func(*http.Request){nginx("", "")}, 400},
		{"another path in another dialect", []func(*http.Request){nginx("GET", "/api/only"), header("X-Forwarded-Uri", "/api/free")}, 400},
		{"the same in two dialects", []func(*http.Request){nginx("GET", "/api/only"), traefik("GET", "/api/only")}, 403},
		{"another method in another dialect", []func(*http.Request){header("X-Original-URI", "/api/only"), traefik("OPTIONS", "/api/only"), preflight}, 400},
		{"two of one", []func(*http.Request){twice("X-Original-Uri", "/api/only", "/api/free")}, 400},
		{"two methods", []func(*http.Request){nginx("GET", "/api/only"), twice("X-Original-Method", "GET", "OPTIONS")}, 400},
		{"no path", []func(*http.Request){nginx("GET", "api/free")}, 400},
		{"another scheme", []func(*http.Request){nginx("GET", "ftp://example.com/api/free")}, 400},
		{"no method", []func(*http.Request){nginx("GET /", "/api/free")}, 400},
		{"a preflight, where the proxy says nothing of the method", []func(*http.Request){nginx("OPTIONS", "/api/only"), preflight}, 403},
	}
	for _, tt := range tests {
		a := s.send(t, "GET", "/v1/forward-auth", "", append(tt.edit, header("X-API-Key", "globex-key"))...)
		wantProblem(t, a, tt.status)
		if t.Failed() {
			t.Fatalf("that was: %s", tt.what)
		}
	}
	for _, query := range []string{"?deny=429", "?deny=403&deny=403", "?preflight", "?x=1", "?deny=%zz"} {
		wantProblem(t, s.send(t, "GET", "/v1/forward-auth"+query, "", nginx("GET", "/api"), header("X-API-Key", "acme-key")), 400)
	}
	a := s.send(t, "GET", "/v1/forward-auth?preflight=pass", "", nginx("OPTIONS", "/api/only"), preflight)
	if a.StatusCode != 200 || a.Header.Get("X-Headgate-Tenant") != "*" {
		t.Errorf("preflight=pass: %d %v %s", a.StatusCode, a.Header, a.body)
	}
}

// The example for Traefik, which is no package of Debian, is a configuration that asks where this API is.
func TestTraefikExample(t *testing.T) {
	var c struct {
		HTTP struct {
			Middlewares struct {
				Headgate struct {
					ForwardAuth struct {
						Address string `yaml:"address"`
						Trust   *bool  `yaml:"trustForwardHeader"`
					} `yaml:"forwardAuth"`
				} `yaml:"headgate"`
			} `yaml:"middlewares"`
		} `yaml:"http"`
	}
	if err := yaml.Unmarshal([]byte(example(t, "traefik.yaml")), &c); err != nil {
		t.Fatal(err)
	}
	f := c.HTTP.Middlewares.Headgate.ForwardAuth
	path, found := strings.CutPrefix(f.Address, "http://127.0.0.1:9090")
	if !found || f.Trust == nil || *f.Trust || config.CheckListen("127.0.0.1:9090") != nil {
		t.Fatalf("%+v", f)
	}
	s := start(t, file, nil)
	if a := s.send(t, "GET", path, "", traefik("GET", "/api"), header("X-API-Key", "acme-key")); a.StatusCode != 200 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}
