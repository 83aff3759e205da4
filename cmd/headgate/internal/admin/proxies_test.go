package admin_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/gatetest"
)

// examples is where the configurations of other proxies lie that people copy. The tests run those very files.
const examples = "../../../../deploy/forward-auth/"

func example(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(examples + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestNginx(t *testing.T) { tryProxy(t, runNginx, 503, "nginx.conf") }

// The lines by which docs/api.md lets requests pass while Headgate cannot be reached.
func TestNginxLetsPass(t *testing.T) {
	document, err := os.ReadFile(documentFile)
	if err != nil {
		t.Fatal(err)
	}
	const onAway, pass = "error_page 502 504 = @pass;", "location @pass { return 204; }"
	if !strings.Contains(string(document), "`"+onAway+"`") || !strings.Contains(string(document), "`"+pass+"`") {
		t.Error("docs/api.md has other lines")
	}
	app := new(seen)
	upstream := httptest.NewServer(app)
	defer upstream.Close()
	front := gatetest.FreeAddr(t)
	const location = "location = /_headgate {\n"
	text := strings.NewReplacer("127.0.0.1:8080", front, "127.0.0.1:9090", gatetest.FreeAddr(t), "127.0.0.1:9000", addrOf(upstream),
		location, pass+"\n"+location+onAway+"\n").Replace(example(t, "nginx.conf"))
	run(t, runNginx(t, t.TempDir(), text), front)
	a := send(t, "GET", "http://"+front+"/api/x", "", header("X-Headgate-Tenant", "acme"))
	if got, n := app.take(); a.StatusCode != 200 || n != 1 || got.Get("X-Headgate-Tenant") != "" {
		t.Errorf("%d %s, and %d arrived with %v; want 200, and one of nobody", a.StatusCode, a.body, n, got)
	}
}

func runNginx(t *testing.T, dir string, texts ...string) *exec.Cmd {
	// As another user than root, nginx may not use its own folders.
	var folders strings.Builder
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&folders, "%s_temp_path %s;\n", kind, filepath.Join(dir, kind))
	}
	text := strings.Replace(texts[0], "http {\n", "http {\naccess_log off;\n"+folders.String(), 1)
	file := filepath.Join(dir, "nginx.conf")
	writeFile(t, file, text)
	return exec.Command(program(t, "nginx"), "-p", dir, "-e", "stderr", "-c", file, "-g", "daemon off; error_log stderr; pid "+filepath.Join(dir, "pid")+";")
}

func TestCaddy(t *testing.T) { tryProxy(t, runCaddy, 502, "Caddyfile") }

func runCaddy(t *testing.T, dir string, texts ...string) *exec.Cmd {
	file := filepath.Join(dir, "Caddyfile")
	writeFile(t, file, texts[0])
	cmd := exec.Command(program(t, "caddy"), "run", "--config", file, "--adapter", "caddyfile")
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	return cmd
}

func TestHAProxy(t *testing.T) { tryProxy(t, runHAProxy, 503, "haproxy.cfg", "headgate.lua") }

func runHAProxy(t *testing.T, dir string, texts ...string) *exec.Cmd {
	file, script := filepath.Join(dir, "haproxy.cfg"), filepath.Join(dir, "headgate.lua")
	writeFile(t, file, strings.Replace(texts[0], "/etc/haproxy/headgate.lua", script, 1))
	writeFile(t, script, texts[1])
	return exec.Command(program(t, "haproxy"), "-db", "-f", file)
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// program returns where a program is.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		path = "/usr/sbin/" + name // where Debian has those that users without privileges do not look for
		if _, err := os.Stat(path); err != nil {
			t.Fatalf("no %s on this system: run make deps, which installs it", name)
		}
	}
	return path
}

// seen is an application that notes what reaches it. On /api/free it answers 403 itself.
type seen struct {
	mu   sync.Mutex
	last http.Header
	n    int
}

// ServeHTTP implements [http.Handler].
func (s *seen) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.last, s.n = r.Header.Clone(), s.n+1
	s.mu.Unlock()
	if r.URL.Path == "/api/free" {
		w.WriteHeader(http.StatusForbidden)
	}
	_, _ = io.WriteString(w, "the application")
}

func (s *seen) take() (http.Header, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.n
	s.n = 0
	return s.last, n
}

// tryProxy runs a real proxy with one of the examples, which may be several files, between callers, Headgate and an application. away is
// its answer when Headgate cannot be reached.
func tryProxy(t *testing.T, command func(t *testing.T, dir string, texts ...string) *exec.Cmd, away int, names ...string) {
	s := start(t, file, nil)
	app := new(seen)
	upstream := httptest.NewServer(app)
	defer upstream.Close()
	front := gatetest.FreeAddr(t)
	addresses := strings.NewReplacer("127.0.0.1:8080", front, "127.0.0.1:9090", addrOf(s.Server), "127.0.0.1:9000", addrOf(upstream))
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = addresses.Replace(example(t, name))
	}
	run(t, command(t, t.TempDir(), texts...), front)
	url := "http://" + front

	for i := range 3 {
		a := send(t, "POST", url+"/api/x?y=1", "body", header("X-API-Key", "acme-key"), header("X-Headgate-Tenant", "globex"))
		if a.StatusCode != 200 || a.body != "the application" || a.Header.Get("RateLimit-Policy") != `"pro/hour";q=3;w=3600` ||
			!strings.HasPrefix(a.Header.Get("RateLimit"), `"pro/hour";r=`+strconv.Itoa(2-i)) {
			t.Errorf("request %d: %d %v %s", i+1, a.StatusCode, a.Header, a.body)
		}
		got, n := app.take()
		if tenants := got.Values("X-Headgate-Tenant"); n != 1 || len(tenants) != 1 || tenants[0] != "acme" || got.Get("X-API-Key") != "" {
			t.Errorf("request %d: %d arrived, with %v; want one of acme, without its key", i+1, n, got)
		}
	}
	a := send(t, "GET", url+"/api/x", "", header("X-API-Key", "acme-key"))
	if n, err := strconv.Atoi(a.Header.Get("Retry-After")); err != nil || n < 1 || n > 3600 || a.StatusCode != 429 ||
		!strings.HasPrefix(a.Header.Get("RateLimit"), `"pro/hour";r=0;t=`) || a.Header.Get("Content-Type") != "application/problem+json" ||
		a.Header.Get("Cache-Control") != "no-store" || !strings.Contains(a.body, `"status":429`) {
		t.Errorf("denied: %d %v %s", a.StatusCode, a.Header, a.body)
	}
	if a := send(t, "GET", url+"/api/x", ""); a.StatusCode != 401 || a.Header.Get("WWW-Authenticate") == "" {
		t.Errorf("no key: %d %v", a.StatusCode, a.Header)
	}
	refusedByProxy(t, url)
	if _, n := app.take(); n != 0 {
		t.Errorf("%d requests that were refused arrived", n)
	}
	if a := send(t, "GET", url+"/api/free", "", header("X-API-Key", "globex-key")); a.StatusCode != 403 || a.body != "the application" || a.Header["Ratelimit"] != nil {
		t.Errorf("the application's own 403: %d %v %s", a.StatusCode, a.Header, a.body)
	}
	app.take()
	s.CloseClientConnections()
	s.Close()
	a = send(t, "GET", url+"/api/free", "", header("X-API-Key", "acme-key"))
	if _, n := app.take(); a.StatusCode != away || a.Header.Get("Retry-After") != "1" || n != 0 {
		t.Errorf("Headgate is away: %d %v, %d arrived; want %d, and nothing to pass", a.StatusCode, a.Header, n, away)
	}
}

// refusedByProxy tries what must not get through, among it what a caller writes into the headers by which proxies ask.
func refusedByProxy(t *testing.T, url string) {
	t.Helper()
	tests := []struct {
		path   string
		edit   []func(*http.Request)
		status int
	}{
		{"/api/only", nil, 403},
		{"/", nil, 404},
		{"/api//only", nil, 400},
		{"/api/%2fonly", nil, 400},
		{"/api/x/..%2fonly", nil, 400},
		{"/api/only", []func(*http.Request){header("X-Original-URI", "/api/free"), header("X-Original-URL", "http://x/api/free"), header("X-Forwarded-Uri", "/api/free")}, 403},
		{"/api/only", []func(*http.Request){header("X-Forwarded-Method", "OPTIONS"), header("X-Original-Method", "OPTIONS"),
			header("Origin", "https://example.com"), header("Access-Control-Request-Method", "GET")}, 403},
	}
	for _, tt := range tests {
		a := send(t, "GET", url+tt.path, "", append(tt.edit, header("X-API-Key", "globex-key"))...)
		if a.StatusCode != tt.status || a.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %v %s, want %d", tt.path, a.StatusCode, a.Header, a.body, tt.status)
		}
	}
}

func addrOf(s *httptest.Server) string { return s.Listener.Addr().String() }

// run starts a program that listens on addr, and ends it with the test.
func run(t *testing.T, cmd *exec.Cmd, addr string) {
	t.Helper()
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }() // how it ended is in its log
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt) // both end their own processes then
		select {
		case <-ended:
		case <-time.After(gatetest.Patience):
			_ = cmd.Process.Kill()
			<-ended
		}
		if t.Failed() {
			t.Logf("log of %s:\n%s", cmd.Path, log.String())
		}
	})
	for end := time.Now().Add(gatetest.Patience); time.Now().Before(end); {
		conn, err := net.DialTimeout("tcp", addr, gatetest.Patience)
		if err == nil {
			_ = conn.Close()
			return
		}
		select {
		case <-ended:
			t.Fatalf("%s ended:\n%s", cmd.Path, log.String())
		case <-time.After(5 * time.Millisecond):
		}
	}
	t.Fatalf("%s does not listen", cmd.Path)
}
