package redisstore_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore"
	"github.com/headgate/headgate/redisstore/redistest"
)

// childEnv names the server that a child process of TestProcesses takes from.
const childEnv = "REDISSTORE_TEST_CHILD"

// childTakes is how often each child takes under each algorithm.
const childTakes = 125

// child is what TestProcesses runs in each process: it says that it is ready, waits for a word, takes, and says what was granted.
func child(addr string) int {
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	store, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, a := range algorithms {
		sum, err := spend(ctx, childTakes, []*redisstore.Store{store}, headgate.Charge{Key: "processes", Cost: 1, Limit: hundred(a)})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Println(sum.granted)
	}
	_ = store.Close()
	_ = client.Close()
	return 0
}

// A worker is a process that runs child.
type worker struct {
	cmd   *exec.Cmd
	start io.WriteCloser
	said  *bufio.Scanner
	error strings.Builder
}

func startWorker(t *testing.T, addr string) *worker {
	t.Helper()
	w := &worker{cmd: exec.CommandContext(t.Context(), os.Args[0])}
	w.cmd.Env = append(os.Environ(), childEnv+"="+addr)
	w.cmd.Stderr = &w.error
	var err error
	if w.start, err = w.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	w.said = bufio.NewScanner(out)
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return w
}

// hear returns the next line that the worker says.
func (w *worker) hear(t *testing.T) string {
	t.Helper()
	if !w.said.Scan() {
		t.Fatalf("a process ended early: %v\n%s", w.cmd.Wait(), &w.error)
	}
	return w.said.Text()
}

// TestProcesses has 8 processes take 1,000 times in all from a fresh key of capacity 100, each algorithm.
func TestProcesses(t *testing.T) {
	server := redistest.Start(t)
	workers := make([]*worker, 8)
	for i := range workers {
		workers[i] = startWorker(t, server.Addr())
	}
	for _, w := range workers {
		if line := w.hear(t); line != "ready" {
			t.Fatalf("a process says %q, want ready", line)
		}
	}
	for _, w := range workers {
		if _, err := io.WriteString(w.start, "go\n"); err != nil {
			t.Fatal(err)
		}
	}
	granted := make(map[headgate.Algorithm]int)
	for _, w := range workers {
		for _, a := range algorithms {
			var n int
			if _, err := fmt.Sscan(w.hear(t), &n); err != nil {
				t.Fatal(err)
			}
			granted[a] += n
		}
		if err := w.cmd.Wait(); err != nil {
			t.Fatalf("%v\n%s", err, &w.error)
		}
	}
	for _, a := range algorithms {
		if granted[a] != 100 {
			t.Errorf("%v: 8 processes were granted %d of 1000, want 100", a, granted[a])
		}
	}
	requireTTLs(t, server.Client())
}
