package load

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"syscall"

	"github.com/headgate/headgate"
)

// A Store puts load on a headgate.Store directly.
type Store struct {
	store headgate.Store
	limit headgate.Limit
}

// NewStore returns a target whose requests take one token each from store under limit.
func NewStore(store headgate.Store, limit headgate.Limit) *Store {
	return &Store{store, limit}
}

// Do implements [Target].
func (s *Store) Do(ctx context.Context, key int) Outcome {
	d, err := s.store.Take(ctx, headgate.Charge{Key: strconv.Itoa(key), Cost: 1, Limit: s.limit})
	switch {
	case err != nil:
		return failed(err, "store")
	case d.Allowed:
		return Outcome{Verdict: Allowed}
	default:
		return Outcome{Verdict: Denied}
	}
}

// failed says what kind of failure err is; other stands for those that are neither a time-out nor the connection's.
func failed(err error, other string) Outcome {
	var network net.Error
	var op *net.OpError
	kind := other
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		kind = "timeout"
	case errors.As(err, &op), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, net.ErrClosed):
		kind = "connection"
	}
	return Outcome{Verdict: Failed, Kind: kind, Err: err}
}
