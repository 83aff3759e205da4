package main_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a test waits for what happens at once on a machine that is not busy.
const patience = 30 * time.Second

// binaryVar tells the tests where TestMain put the program.
const binaryVar = "HEADGATE_TEST_BINARY"

// TestMain builds the program once. All tests of this package run it as its users do.
func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "headgate")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary := filepath.Join(dir, "headgate")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	if err := os.Setenv(binaryVar, binary); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// run runs the program to its end.
func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Getenv(binaryVar), args...)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), problems.String()
}

// A process is a running headgate serve.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	url    string // of the gateway
	banner string
	ended  chan struct{}

	mu  sync.Mutex
	log bytes.Buffer
}

// Write collects the process's stderr.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

func (p *process) stderr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// serve starts headgate serve on a free port and returns when it listens. It ends with the test, if not before.
func serve(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{t: t, ended: make(chan struct{})}
	p.cmd = exec.Command(os.Getenv(binaryVar), append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	p.cmd.Stderr = p
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // most have ended
		<-p.ended
		if t.Failed() {
			t.Logf("stderr of the gateway:\n%s", p.stderr())
		}
	})
	first := make(chan string, 1)
	go p.follow(stdout, first)
	select {
	case line := <-first:
		before, rest, _ := strings.Cut(line, "://")
		host, _, ok := strings.Cut(rest, " ")
		if !ok {
			t.Fatalf("first line %q names no URL; stderr:\n%s", line, p.stderr())
		}
		p.url = before[strings.LastIndexByte(before, ' ')+1:] + "://" + host
	case <-time.After(patience):
		t.Fatal("the gateway does not come up")
	}
	return p
}

// follow reads stdout to its end and then takes the process's end.
func (p *process) follow(stdout io.Reader, first chan<- string) {
	defer close(p.ended)
	in := bufio.NewReader(stdout)
	for n := 0; ; n++ {
		line, err := in.ReadString('\n')
		p.mu.Lock()
		p.banner += line
		p.mu.Unlock()
		if n == 0 {
			first <- line // empty if the process ended, which serve reports
		}
		if err != nil {
			break
		}
	}
	_ = p.cmd.Wait() // its exit code is in ProcessState
}

func (p *process) stdout() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.banner
}

// admin returns the URL of the admin listener, whose address the process tells in its second line.
func (p *process) admin() string {
	p.t.Helper()
	url := ""
	await(p.t, "the address of the admin listener", func() bool {
		_, rest, _ := strings.Cut(p.stdout(), "health is at ")
		url, _, _ = strings.Cut(rest, "/readyz\n")
		return strings.Contains(rest, "\n")
	})
	return url
}

// await returns once something holds that does so soon.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// signal asks the process to end.
func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// wait returns the exit code once the process has ended.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		p.t.Fatal("the gateway does not end")
		return -1
	}
}

// get sends a request with an API key ("" = none) and returns the response with its body read.
func get(t *testing.T, url, key string) (*http.Response, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		r.Header.Set("X-API-Key", key)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// write puts text into a file named name and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
