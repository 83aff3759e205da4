package proxy

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// build returns Headgate's program, which is gone when tb ends, unless it is there already.
func build(ctx context.Context, tb testing.TB, program string) (string, error) {
	if program != "" {
		return filepath.Abs(program)
	}
	program = filepath.Join(tb.TempDir(), "headgate")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", program, "github.com/headgate/headgate/cmd/headgate")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building headgate (run this in its repository, or name a program with -headgate): %w\n%s", err, text)
	}
	return program, nil
}

// config is a gateway's file with a limit that never denies.
func config(upstream, redis string) string {
	var b strings.Builder
	onError := ""
	fmt.Fprintf(&b, "listen: 127.0.0.1:0\n")
	if redis != "" {
		fmt.Fprintf(&b, "store: {redis: {url: %q, timeout: 5s}}\n", redis)
		onError = ", on_store_error: closed"
	}
	fmt.Fprintf(&b, "plans: {bench: {limits: [\"1000000000/s\"]}}\n")
	fmt.Fprintf(&b, "tenants: [{name: bench, plan: bench, api_key_sha256: \"%x\"}]\n", sha256.Sum256([]byte(apiKey)))
	fmt.Fprintf(&b, "routes: [{path: /, upstream: %q%s}]\n", upstream, onError)
	return b.String()
}

// serve runs the gateway, which ends with tb, and returns its address.
func serve(ctx context.Context, tb testing.TB, program, config string) (string, error) {
	file := filepath.Join(tb.TempDir(), "headgate.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, program, "serve", "--config", file, "--log-level", "error")
	errs := new(strings.Builder)
	cmd.Stderr = errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	tb.Cleanup(func() { // how it ends is of no interest
		if cmd.Process.Signal(syscall.SIGINT) == nil {
			_ = cmd.Wait()
		}
	})
	banner := bufio.NewReader(out)
	first, err := banner.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("headgate serve: %w", errors.Join(err, cmd.Wait(), errors.New(errs.String())))
	}
	go func() { _, _ = io.Copy(io.Discard, banner) }() // ends with the program
	_, rest, found := strings.Cut(first, "http://")
	address, _, _ := strings.Cut(rest, " ")
	if !found || address == "" {
		return "", fmt.Errorf("headgate serve says %q, want where it listens", first)
	}
	return address, nil
}
