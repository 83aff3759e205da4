package httplimit_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

// newServer serves h behind a middleware that lets everything through.
func newServer(t *testing.T, h http.HandlerFunc) *httptest.Server {
	mw := newMiddleware(t, newLimiter(t, nil, headgate.Config{}, headgate.PerSecond(1000)), httplimit.Config{})
	server := httptest.NewServer(mw(h))
	t.Cleanup(server.Close)
	return server
}

// TestFlush reads the first part of a response before the handler goes on to the second.
func TestFlush(t *testing.T) {
	read := make(chan struct{})
	server := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "first\n")
		w.(http.Flusher).Flush()
		select {
		case <-read:
		case <-r.Context().Done():
		}
		_, _ = io.WriteString(w, "second\n")
	})
	response, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body := bufio.NewReader(response.Body)
	for _, want := range []string{"first\n", "second\n"} {
		line, err := body.ReadString('\n')
		if err != nil || line != want {
			t.Fatalf("%q, %v, want %q", line, err, want)
		}
		if want == "first\n" {
			close(read)
		}
	}
	if response.Header.Get("RateLimit") == "" {
		t.Error("no RateLimit")
	}
}

// TestHijack upgrades a connection as a WebSocket does, and talks over it.
func TestHijack(t *testing.T) {
	server := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_ = rw.Flush()
		line, _ := rw.ReadString('\n')
		fmt.Fprint(rw, "echo "+line)
		_ = rw.Flush()
	})
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: example.com\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v, %v", response, err)
	}
	_ = response.Body.Close()
	fmt.Fprint(conn, "hello\n")
	if line, err := reader.ReadString('\n'); err != nil || line != "echo hello\n" {
		t.Errorf("%q, %v", line, err)
	}
}

// TestHEADOverTheWire sends two requests on one connection: a body after a HEAD would be read as the second response.
func TestHEADOverTheWire(t *testing.T) {
	mw := newMiddleware(t, newLimiter(t, nil, headgate.Config{}, headgate.Limit{Period: 1e9}), httplimit.Config{})
	server := httptest.NewServer(mw(ok))
	defer server.Close()
	for _, method := range []string{http.MethodHead, http.MethodGet} {
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != 429 || (len(body) == 0) != (method == http.MethodHead) {
			t.Errorf("%s: %d, %d bytes, %v", method, response.StatusCode, len(body), err)
		}
	}
}
