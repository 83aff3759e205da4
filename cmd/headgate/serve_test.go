package main_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/gatetest"
)

func TestDemo(t *testing.T) {
	p := serve(t)
	denied := 0
	for range 100 {
		resp, body := get(t, p.url+"/hello", "demo-free")
		switch resp.StatusCode {
		case 200:
			if !strings.Contains(body, `"path":"/hello"`) || resp.Header.Get("RateLimit") == "" {
				t.Errorf("200: %s %v", body, resp.Header)
			}
		case 429:
			denied++
			checkDenied(t, resp, body)
		default:
			t.Fatalf("status %d", resp.StatusCode)
		}
		if denied == 3 {
			break
		}
	}
	if denied == 0 {
		t.Error("100 requests at 5/s, and none denied")
	}
	if resp, _ := get(t, p.url, "demo-pro"); resp.StatusCode != 200 || resp.Header.Get("RateLimit-Policy") != `"pro/s";q=100;w=1` {
		t.Errorf("demo-pro: %d %v", resp.StatusCode, resp.Header)
	}
	for _, key := range []string{"", "demo"} {
		if resp, _ := get(t, p.url, key); resp.StatusCode != 401 {
			t.Errorf("key %q: %d, want 401", key, resp.StatusCode)
		}
	}
	p.signal(syscall.SIGTERM)
	if code := p.wait(); code != 0 {
		t.Errorf("SIGTERM: exit code %d, want 0", code)
	}
	if !strings.Contains(p.stdout.String(), "curl -i -H 'X-API-Key: demo-free' "+p.url) || !strings.Contains(p.stdout.String(), "demo-pro") {
		t.Errorf("banner without the lines to try:\n%s", p.stdout.String())
	}
	if strings.Contains(p.stderr.String(), "demo-free") {
		t.Errorf("the log names an API key:\n%s", p.stderr.String())
	}
}

func checkDenied(t *testing.T, resp *http.Response, body string) {
	t.Helper()
	if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err != nil || n < 1 {
		t.Errorf("Retry-After %q, want an integer of 1 or more", resp.Header.Get("Retry-After"))
	}
	if resp.Header.Get("RateLimit-Policy") != `"free/s";q=10;w=2` || !strings.HasPrefix(resp.Header.Get("RateLimit"), `"free/s";r=0;t=`) {
		t.Errorf("fields %v", resp.Header)
	}
	var p struct{ Status int }
	if err := json.Unmarshal([]byte(body), &p); err != nil || p.Status != 429 || resp.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("body %s (%v), want a problem", body, err)
	}
}

func TestPortTaken(t *testing.T) {
	p := serve(t)
	addr := strings.TrimPrefix(p.url, "http://")
	code, stdout, stderr := run(t, "serve", "--listen", addr)
	if code != 1 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, addr) || !strings.Contains(stderr, "--listen") {
		t.Errorf("%d %q %q, want 1 and one line with the remedy", code, stdout, stderr)
	}
}

// A request under way when the program is told to end is finished; no new one is taken.
func TestDrain(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		arrived, release := make(chan struct{}), make(chan struct{})
		up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			close(arrived)
			select {
			case <-release:
				_, _ = io.WriteString(w, "finished")
			case <-r.Context().Done():
			}
		}))
		defer up.Close()
		p := serve(t, "--config", write(t, "c.yaml", "identity: {anonymous: share}\nadmin: 127.0.0.1:0\n"+
			"routes: [{path: /, upstream: \""+up.URL+"\", limits: [\"100/s\"]}]\n"), "--grace", gatetest.Patience.String())
		resp, err := http.Get(p.url)
		if err != nil {
			t.Fatal(err)
		}
		<-arrived
		p.signal(s)
		awaitRefusal(t, p.url)
		close(release)
		body, err := io.ReadAll(resp.Body)
		if err != nil || string(body) != "finished" {
			t.Errorf("%v: the request under way got %q, %v", s, body, err)
		}
		_ = resp.Body.Close()
		if code := p.wait(); code != 0 {
			t.Errorf("%v: exit code %d, want 0", s, code)
		}
	}
}

// awaitRefusal returns once nobody accepts connections any more.
func awaitRefusal(t *testing.T, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), gatetest.Patience)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/%2e%2e", nil) // refused without reaching the upstream
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(r)
		if ctx.Err() != nil {
			t.Fatal("the gateway still accepts connections")
		}
		if err != nil {
			return
		}
		_ = resp.Body.Close()
	}
}

// What does not finish within the grace is cut, and the program ends all the same.
func TestGraceIsBounded(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer up.Close()
	p := serve(t, "--grace", "100ms", "--config", write(t, "c.yaml",
		"identity: {anonymous: share}\nroutes: [{path: /, upstream: \""+up.URL+"\", limits: [\"100/s\"]}]\n"))
	resp, err := http.Get(p.url)
	if err != nil {
		t.Fatal(err)
	}
	p.signal(syscall.SIGTERM)
	if code := p.wait(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the response was cut and looks whole")
	}
	_ = resp.Body.Close()
}
