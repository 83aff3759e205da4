package main_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/gatetest"
)

// version asks which configuration is in force.
type version struct {
	Version   int64
	Hash      string
	Failures  int64  `json:"failed_reloads"`
	LastError string `json:"last_error"`
}

func (p *process) version() version {
	p.t.Helper()
	resp, body := get(p.t, p.admin()+"/v1/config", "")
	var v version
	if err := json.Unmarshal([]byte(body), &v); err != nil || resp.StatusCode != 200 {
		p.t.Fatalf("/v1/config: %d %s (%v)", resp.StatusCode, body, err)
	}
	return v
}

// limited is a configuration whose one limit is this.
func limited(limit, upstream string) string {
	return "admin: 127.0.0.1:0\nidentity: {anonymous: share}\nroutes: [{path: /, upstream: \"" + upstream + "\", limits: [\"" + limit + "\"]}]\n"
}

// The running gateway follows its file, whole, and keeps what was used; SIGHUP only makes it faster.
func TestReload(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer up.Close()
	file := write(t, "c.yaml", limited("2/hour", up.URL))
	p := serve(t, "--config", file)
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := func(statuses ...int) {
		t.Helper()
		for i, s := range statuses {
			if resp, _ := get(t, p.url, ""); resp.StatusCode != s {
				t.Errorf("request %d: %d, want %d", i+1, resp.StatusCode, s)
			}
		}
	}
	want(200, 200, 429)
	first := p.version()
	if first.Version != 1 || len(first.Hash) != 64 || first.LastError != "" {
		t.Errorf("at the start: %+v", first)
	}
	put(limited("3/hour", up.URL))
	gatetest.Await(t, "version 2", func() bool { return p.version().Version == 2 })
	want(200, 429)

	put(limited("4/fortnight", up.URL))
	p.signal(syscall.SIGHUP)
	gatetest.Await(t, "the problem", func() bool { return p.version().Failures == 1 })
	if v := p.version(); v.Version != 2 || v.Hash == first.Hash || !strings.Contains(v.LastError, file+":3: ") || !strings.Contains(p.stderr.String(), file+":3: ") {
		t.Errorf("a file that is wrong: %+v; log:\n%s", v, p.stderr.String())
	}
	want(429)
	put("listen: 127.0.0.1:1\n" + strings.Replace(limited("4/hour", up.URL), "127.0.0.1:0", "127.0.0.1:2", 1))
	p.signal(syscall.SIGHUP)
	gatetest.Await(t, "the refusal", func() bool { return p.version().Failures == 2 })
	if v := p.version(); v.Version != 2 || !strings.Contains(v.LastError, file+":2: admin differs") || strings.Contains(v.LastError, "listen") {
		t.Errorf("a file that needs a restart: %+v; --listen took listen's place", v)
	}
	want(429)
	put(limited("4/hour", up.URL))
	p.signal(syscall.SIGHUP)
	gatetest.Await(t, "version 3", func() bool { return p.version().Version == 3 })
	want(200, 429)
	p.signal(syscall.SIGHUP)
	p.signal(syscall.SIGHUP)
	if v := p.version(); v.Version != 3 || v.LastError != "" {
		t.Errorf("in the end: %+v", v)
	}
	p.signal(syscall.SIGTERM)
	if code := p.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// A Kubernetes volume changes by a link that leads elsewhere.
func TestReloadOfAKubernetesVolume(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer up.Close()
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		data := filepath.Join(dir, "..data")
		for _, err := range []error{
			os.Mkdir(filepath.Join(dir, name), 0o700), os.WriteFile(filepath.Join(dir, name, "headgate.yaml"), []byte(text), 0o600),
			os.Symlink(name, data+"_tmp"), os.Rename(data+"_tmp", data),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	put("..2026_1", limited("1/hour", up.URL))
	file := filepath.Join(dir, "headgate.yaml")
	if err := os.Symlink(filepath.Join("..data", "headgate.yaml"), file); err != nil {
		t.Fatal(err)
	}
	p := serve(t, "--config", file)
	for i := range 3 {
		put("..2026_1"+strings.Repeat("x", i+1), limited(strings.Repeat("9", i+1)+"/hour", up.URL))
		gatetest.Await(t, "the next version", func() bool { return p.version().Version == int64(i+2) })
	}
	if resp, _ := get(t, p.url, ""); resp.Header.Get("RateLimit-Policy") != `"/ tenant/hour";q=999;w=3600` {
		t.Errorf("RateLimit-Policy %s", resp.Header.Get("RateLimit-Policy"))
	}
}
