package gateway_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The first part of a response arrives before the upstream has made the second, also when that takes longer than the route's timeout.
func TestStreaming(t *testing.T) {
	next := make(chan struct{})
	text := strings.Replace(file, `path: /, upstream: "UPSTREAM"`, `path: /, upstream: "UPSTREAM", timeout: 100ms`, 1)
	url := serve(t, text, nil, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			_, _ = fmt.Fprintf(w, "data: %d\n", i)
			w.(http.Flusher).Flush()
			select {
			case <-next:
			case <-r.Context().Done():
				return
			}
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	key("acme-key")(r)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	for i := range 3 {
		if !lines.Scan() || lines.Text() != fmt.Sprintf("data: %d", i) {
			t.Fatalf("line %d: %q, %v", i, lines.Text(), lines.Err())
		}
		if i == 1 {
			<-time.After(200 * time.Millisecond) // longer than the timeout, which is for the response's beginning
		}
		next <- struct{}{}
	}
}

func TestWebSocketUpgrade(t *testing.T) {
	url := serve(t, file, nil, echoUpgrade)
	c := upgrade(t, url)
	for _, word := range []string{"one\n", "two\n"} {
		if _, err := io.WriteString(c.conn, word); err != nil {
			t.Fatal(err)
		}
		if got, err := c.in.ReadString('\n'); err != nil || got != word {
			t.Errorf("echo %q, %v; want %q", got, err, word)
		}
	}
}

// echoUpgrade switches protocols and sends back every byte.
func echoUpgrade(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != "websocket" {
		http.Error(w, "upgrade required", http.StatusUpgradeRequired)
		return
	}
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	_, _ = io.Copy(conn, buf)
}

type upgraded struct {
	conn net.Conn
	in   *bufio.Reader
	resp *http.Response
}

// upgrade opens a connection to url and switches protocols.
func upgrade(t *testing.T, url string) upgraded {
	t.Helper()
	host := strings.TrimPrefix(url, "http://")
	conn, err := net.DialTimeout("tcp", host, wait)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(wait)); err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(conn, "GET /ws HTTP/1.1\r\nHost: %s\r\nX-API-Key: acme-key\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", host)
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols || resp.Header.Get("RateLimit") == "" {
		t.Fatalf("upgrade: %v, %v; want 101 with the limit's fields", resp, err)
	}
	return upgraded{conn, in, resp}
}

// A caller that goes away ends the upstream's request.
func TestClientAbort(t *testing.T) {
	arrived, ended := make(chan struct{}), make(chan struct{})
	url := serve(t, file, nil, func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
		close(ended)
	})
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	key("acme-key")(r)
	failed := make(chan error, 1)
	go func() {
		resp, err := http.DefaultClient.Do(r)
		if err == nil {
			_ = resp.Body.Close()
		}
		failed <- err
	}()
	<-arrived
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("caller: %v", err)
	}
	select {
	case <-ended:
	case <-time.After(wait):
		t.Error("the upstream's request did not end")
	}
}
