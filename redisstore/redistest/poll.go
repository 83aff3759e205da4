package redistest

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// pollEvery is the time between two looks at what a server is doing.
const pollEvery = 5 * time.Millisecond

// final wraps an error that no waiting will cure.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// stopPolling makes poll return err at once.
func stopPolling(err error) error { return final{err} }

// poll calls ready until it returns nil, or one that stopPolling made, or ctx ends; then the error says what was last amiss.
func poll(ctx context.Context, ready func() error) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := ready()
		var f final
		switch {
		case err == nil:
			return nil
		case errors.As(err, &f):
			return f.error
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; last: %w", ctx.Err(), err)
		case <-tick.C:
		}
	}
}
