package cli_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/cli"
	"github.com/headgate/headgate/cmd/headgate/internal/gatetest"
	"github.com/headgate/headgate/redisstore/redistest"
)

// Nothing is left running when serve has returned: neither of the listeners, nor of the store, nor of an upgraded connection that its
// caller still holds.
func TestServeLeavesNoGoroutine(t *testing.T) {
	server := redistest.Start(t)
	up := httptest.NewServer(http.HandlerFunc(upgradeOrHello))
	defer up.Close()
	file := filepath.Join(t.TempDir(), "c.yaml")
	text := "store: {redis: {url: \"" + server.URL() + "\", timeout: 10s}}\nidentity: {anonymous: share}\n" +
		"routes: [{path: /, upstream: \"" + up.URL + "\", limits: [\"100/s\"], on_store_error: local}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM) // starts the process's one goroutine for signals, which stays
	stop()
	for _, args := range [][]string{nil, {"--config", file}} {
		before := runtime.NumGoroutine()
		serveOnce(t, args...)
		up.CloseClientConnections() // the upstream is the test's own
		end := time.Now().Add(gatetest.Patience)
		for runtime.NumGoroutine() > before {
			if time.Now().After(end) {
				stacks := make([]byte, 1<<20)
				t.Fatalf("serve %q: %d goroutines before, now\n%s", args, before, stacks[:runtime.Stack(stacks, true)])
			}
			runtime.Gosched()
		}
	}
}

// serveOnce runs serve, sends a request and, where there is an upstream that does so, upgrades a connection; then it ends serve by a signal.
func serveOnce(t *testing.T, args ...string) {
	t.Helper()
	out, in := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- cli.Run(append([]string{"serve", "--listen", "127.0.0.1:0"}, args...), in, io.Discard)
		_ = in.Close()
	}()
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(line, "http://")
	host, _, _ := strings.Cut(rest, " ")
	drained := make(chan struct{})
	go func() { defer close(drained); _, _ = io.Copy(io.Discard, lines) }()
	conn, err := net.DialTimeout("tcp", host, gatetest.Patience)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(gatetest.Patience)); err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\nX-API-Key: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", host, keyFor(args))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := statusFor(args); resp.StatusCode != want {
		t.Errorf("status %d, want %d", resp.StatusCode, want)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-code:
		if got != 0 {
			t.Errorf("exit code %d, want 0", got)
		}
	case <-time.After(gatetest.Patience):
		t.Fatal("serve does not end")
	}
	<-drained
}

// The demo knows its tenants and does not upgrade; the file shares one bucket and its upstream does.
func keyFor(args []string) string {
	if args == nil {
		return "demo-pro"
	}
	return ""
}

func statusFor(args []string) int {
	if args == nil {
		return http.StatusOK
	}
	return http.StatusSwitchingProtocols
}

func upgradeOrHello(w http.ResponseWriter, _ *http.Request) {
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	_, _ = io.Copy(conn, buf)
}
