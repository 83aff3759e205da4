package cli_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/cli"
	"github.com/headgate/headgate/cmd/headgate/internal/gatetest"
	"github.com/headgate/headgate/redisstore/redistest"
)

// Nothing is left running when bench has returned, on any kind of target, nor on the side of a server whose connections it would keep.
func TestBenchLeavesNoGoroutine(t *testing.T) {
	server := redistest.Start(t)
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer up.Close()
	_, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM) // starts the process's one goroutine for signals, which stays
	stop()
	for _, target := range [][]string{{"--memory"}, {"--redis", server.URL()}, {"--url", up.URL}} {
		before, clients := runtime.NumGoroutine(), clientsOf(server)
		args := append([]string{"bench", "--limit", "1000/s", "--rate", "500/s", "--duration", "200ms"}, target...)
		if code := cli.Run(args, io.Discard, io.Discard); code != 0 {
			t.Errorf("%q: exit code %d, want 0", args, code)
		}
		end := time.Now().Add(gatetest.Patience)
		for runtime.NumGoroutine() > before || clientsOf(server) > clients {
			if time.Now().After(end) {
				stacks := make([]byte, 1<<20)
				t.Fatalf("bench %q: %d goroutines and %d clients of Redis before, now %d clients and\n%s", args, before, clients, clientsOf(server), stacks[:runtime.Stack(stacks, true)])
			}
			runtime.Gosched()
		}
	}
}

// clientsOf returns how many connections a server has.
func clientsOf(server *redistest.Server) int {
	list, _ := server.Do("CLIENT", "LIST", "TYPE", "normal").(string)
	return strings.Count(list, "\n")
}
