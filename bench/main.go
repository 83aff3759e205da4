// Command bench measures Headgate beside other rate limiters. Run it with -help; make bench runs all of it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/headgate/headgate/bench/internal/inprocess"
	"github.com/headgate/headgate/bench/internal/proxy"
	"github.com/headgate/headgate/bench/internal/rls"
	"github.com/headgate/headgate/bench/internal/worker"
)

// Exit codes.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// jobs are what the program does when it is a worker of itself.
var jobs = map[string]worker.Job{
	inprocess.SpeedJob: inprocess.Speed,
	inprocess.SizeJob:  inprocess.Size,
	proxy.UpstreamJob:  proxy.Upstream,
	proxy.BareJob:      proxy.Bare,
	rls.YesJob:         rls.Yes,
}

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	if len(args) > 0 && args[0] == worker.Word {
		signal.Ignore(os.Interrupt) // Ctrl-C reaches workers too: who started them ends them
		return worker.Main(args[1:], jobs, os.Stdin, os.Stdout, os.Stderr)
	}
	o, err := parse(args, os.Stderr)
	switch {
	case errors.Is(err, errHelped):
		return exitDone
	case err != nil:
		_, _ = fmt.Fprintf(os.Stderr, "bench: %v; bench -help says what is right\n", err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait
	err = o.run(ctx, os.Stdout, os.Stderr)
	switch {
	case ctx.Err() != nil:
		_, _ = fmt.Fprintln(os.Stderr, "bench: interrupted: the servers are ended, and nothing was written")
		return exitInterrupted
	case err != nil:
		_, _ = fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		return exitFailed
	}
	return exitDone
}
