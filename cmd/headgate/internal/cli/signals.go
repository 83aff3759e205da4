package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// signaled is the cause of a context that a signal ended.
type signaled struct{ os.Signal }

// Error names the signal.
func (s signaled) Error() string { return "signal: " + s.String() }

// untilSignal returns a context that ends with the first SIGTERM or Ctrl-C, and what frees it. A second signal ends the program at once.
func untilSignal() (context.Context, func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithCancelCause(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(signaled{s})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(context.Canceled)
		<-done
	}
}

// onHangup returns a channel of SIGHUPs, which from now on do not end the program, and what makes them do so again.
func onHangup() (<-chan os.Signal, func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	return signals, func() { signal.Stop(signals) }
}
