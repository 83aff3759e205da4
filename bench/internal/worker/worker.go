// Package worker runs a part of the program as a process of its own: so that nobody pays for another one's garbage, or to have a server that
// others are compared with.
package worker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Word is the first argument of the program when it is a worker.
const Word = "worker"

// A Job is what a worker does: it reads a spec in JSON, and writes to out either a result in JSON, or as a server a line with its address;
// then it serves until ctx ends.
type Job func(ctx context.Context, spec []byte, out io.Writer) error

// Main is the program as a worker. args are those after Word: the name of a job and its spec. A worker ends when its standard input does, and
// so with the process that started it. It returns the exit code.
func Main(args []string, jobs map[string]Job, in io.Reader, out, errs io.Writer) int {
	if len(args) != 2 || jobs[args[0]] == nil {
		_, _ = fmt.Fprintf(errs, "there is no such worker: %q\n", args)
		return 2
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in) // until it ends, in whichever way
		cancel()
	}()
	if err := jobs[args[0]](ctx, []byte(args[1]), out); err != nil {
		_, _ = fmt.Fprintln(errs, err)
		return 1
	}
	return 0
}

// command returns a worker that is yet to be started, its input, and what it says is wrong.
func command(ctx context.Context, name string, spec any) (*exec.Cmd, io.Closer, *strings.Builder, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, nil, nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, nil, nil, err
	}
	cmd := exec.CommandContext(ctx, self, Word, name, string(text))
	errs := new(strings.Builder)
	cmd.Stderr = errs
	in, err := cmd.StdinPipe()
	return cmd, in, errs, err
}

// Run has a worker do a job, and reads its result.
func Run(ctx context.Context, name string, spec, result any) error {
	cmd, in, errs, err := command(ctx, name, spec)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("worker %s: %w: %s", name, err, strings.TrimSpace(errs.String()))
	}
	return json.Unmarshal(out, result)
}

// Serve starts a server, which ends with tb, and returns its address.
func Serve(ctx context.Context, tb testing.TB, name string, spec any) (string, error) {
	cmd, in, errs, err := command(ctx, name, spec)
	if err != nil {
		return "", err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	tb.Cleanup(func() { // how it ends is of no interest
		_ = in.Close()
		_ = cmd.Wait()
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("worker %s: %w", name, errors.Join(err, in.Close(), cmd.Wait(), errors.New(errs.String())))
	}
	return strings.TrimSpace(address), nil
}
