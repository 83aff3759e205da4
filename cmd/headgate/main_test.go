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
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/gatetest"
)

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
	ctx, cancel := context.WithTimeout(context.Background(), gatetest.Patience)
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
	stdout gatetest.Log
	stderr gatetest.Log
	ended  chan struct{}
}

// serve starts headgate serve on a free port and returns when it listens. It ends with the test, if not before.
func serve(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{t: t, ended: make(chan struct{})}
	p.cmd = exec.Command(os.Getenv(binaryVar), append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	p.cmd.Stderr = &p.stderr
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
			t.Logf("stderr of the gateway:\n%s", p.stderr.String())
		}
	})
	first := make(chan string, 1)
	go p.follow(stdout, first)
	select {
	case line := <-first:
		before, rest, _ := strings.Cut(line, "://")
		host, _, ok := strings.Cut(rest, " ")
		if !ok {
			t.Fatalf("first line %q names no URL; stderr:\n%s", line, p.stderr.String())
		}
		p.url = before[strings.LastIndexByte(before, ' ')+1:] + "://" + host
	case <-time.After(gatetest.Patience):
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
		_, _ = p.stdout.Write([]byte(line)) // which does not fail
		if n == 0 {
			first <- line // empty if the process ended, which serve reports
		}
		if err != nil {
			break
		}
	}
	_ = p.cmd.Wait() // its exit code is in ProcessState
}

// admin returns the URL of the admin listener, whose address the process tells in its second line.
func (p *process) admin() string {
	p.t.Helper()
	url := ""
	gatetest.Await(p.t, "the address of the admin listener", func() bool {
		_, rest, _ := strings.Cut(p.stdout.String(), "health is at ")
		url, _, _ = strings.Cut(rest, "/readyz\n")
		return strings.Contains(rest, "\n")
	})
	return url
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
	case <-time.After(gatetest.Patience):
		p.t.Fatal("the gateway does not end")
		return -1
	}
}

// get sends a request with an API key ("" = none) and returns the response with its body read.
func get(t *testing.T, url, key string) (*http.Response, string) {
	t.Helper()
	if key == "" {
		return gatetest.Caller{}.Send(t, http.MethodGet, url, nil)
	}
	return gatetest.Caller{}.Send(t, http.MethodGet, url, nil, func(r *http.Request) { r.Header.Set("X-API-Key", key) })
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
