package load_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/load"
)

func newHTTP(t *testing.T, cfg load.HTTPConfig) *load.HTTP {
	t.Helper()
	cfg.MaxIdle = 4
	target, err := load.NewHTTP(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = target.Close() })
	return target
}

func TestHTTPVerdicts(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, err := strconv.Atoi(r.URL.Path[1:])
		if err != nil {
			panic(http.ErrAbortHandler) // no answer
		}
		w.Header().Set("Location", "/500")
		w.WriteHeader(status)
	}))
	defer server.Close()
	for path, want := range map[string]load.Outcome{
		"200": {Verdict: load.Allowed}, "204": {Verdict: load.Allowed}, "302": {Verdict: load.Allowed},
		"429": {Verdict: load.Denied},
		"401": {Verdict: load.Failed, Kind: "status 401"}, "404": {Verdict: load.Failed, Kind: "status 404"}, "503": {Verdict: load.Failed, Kind: "status 503"},
		"none": {Verdict: load.Failed, Kind: "connection"},
	} {
		got := newHTTP(t, load.HTTPConfig{URL: server.URL + "/" + path, Method: http.MethodPost}).Do(t.Context(), 0)
		if got.Verdict != want.Verdict || got.Kind != want.Kind || (got.Err != nil) != (path == "none") {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
	}
}

// A body that breaks off is a failure, and so is one that never ends.
func TestHTTPBrokenBody(t *testing.T) {
	for kind, handler := range map[string]http.HandlerFunc{
		"connection": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10")
			w.WriteHeader(http.StatusOK)
		},
		"timeout": func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
	} {
		server := httptest.NewServer(handler)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if kind == "connection" {
			ctx = t.Context()
		}
		if got := newHTTP(t, load.HTTPConfig{URL: server.URL}).Do(ctx, 0); got.Verdict != load.Failed || got.Kind != kind {
			t.Errorf("%+v, want %s", got, kind)
		}
		cancel()
		server.Close()
	}
}

// The number of the key goes where the placeholder is. A request without one is the same for all keys.
func TestHTTPRequests(t *testing.T) {
	requests := make(chan *http.Request, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { requests <- r }))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	for _, tt := range []struct {
		cfg                      load.HTTPConfig
		keyed                    bool
		uri, host, key, user, pw string
	}{
		{load.HTTPConfig{URL: server.URL + "/a?b=c"}, false, "/a?b=c", host, "", "", ""},
		{load.HTTPConfig{URL: server.URL + "/t/{key}?k={key}"}, true, "/t/17?k=17", host, "", "", ""},
		{load.HTTPConfig{URL: server.URL, Headers: []string{"x-api-key: k-{key}", "Host:  other.example "}}, true, "/", "other.example", "k-17", "", ""},
		{load.HTTPConfig{URL: "http://u:p%40@" + host + "/{key}"}, true, "/17", host, "", "u", "p@"},
	} {
		if tt.cfg.Keyed() != tt.keyed {
			t.Errorf("%+v: keyed is %v", tt.cfg, !tt.keyed)
		}
		if o := newHTTP(t, tt.cfg).Do(t.Context(), 17); o.Verdict != load.Allowed {
			t.Fatalf("%+v: %+v", tt.cfg, o)
		}
		got := <-requests
		user, pw, _ := got.BasicAuth()
		if got.Method != http.MethodGet || got.RequestURI != tt.uri || got.Host != tt.host || got.Header.Get("X-API-Key") != tt.key || user != tt.user || pw != tt.pw {
			t.Errorf("%+v: got %s %s of %s, %v", tt.cfg, got.Method, got.RequestURI, got.Host, got.Header)
		}
	}
}

// What is wrong is said without repeating what may be secret.
func TestHTTPWrongConfig(t *testing.T) {
	for want, cfg := range map[string]load.HTTPConfig{
		"not of the form http":    {URL: "localhost:secret"},
		"http://HOST":             {URL: "http://u:secret@"},
		"https://HOST":            {URL: "ftp://secret/"},
		"a URL":                   {URL: "http://a/%zzsecret"},
		"method":                  {URL: "http://a", Method: "GE T"},
		"of the form \"Name: val": {URL: "http://a", Headers: []string{"X-API-Key secret"}},
		"a header of 8 bytes":     {URL: "http://a", Headers: []string{": secret"}},
	} {
		want = strings.TrimPrefix(want, "a ")
		if _, err := load.NewHTTP(cfg); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", want, err)
		}
	}
}

func TestHTTPCheck(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	target := newHTTP(t, load.HTTPConfig{URL: "http://" + l.Addr().String()})
	if target.Addr() != l.Addr().String() {
		t.Errorf("%s, want %s", target.Addr(), l.Addr())
	}
	if err := target.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := target.Check(t.Context()); err == nil {
		t.Error("nobody listens, and no error")
	}
	if o := target.Do(t.Context(), 0); o.Kind != "connection" {
		t.Errorf("%+v, want a failed connection", o)
	}
	for url, want := range map[string]string{"http://a/": "a:80", "https://[::1]/": "[::1]:443", "https://a:1/": "a:1"} {
		if got := newHTTP(t, load.HTTPConfig{URL: url}).Addr(); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
}
