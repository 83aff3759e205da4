package load_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/load"
)

func TestStore(t *testing.T) {
	m, err := headgate.NewMemory(headgate.MemoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	target := load.NewStore(m, parse(t, "1/hour"))
	for i, want := range []load.Verdict{load.Allowed, load.Denied} {
		if o := target.Do(t.Context(), 5); o.Verdict != want || o.Err != nil {
			t.Errorf("%d: %+v, want %v", i, o, want)
		}
	}
	if o := target.Do(t.Context(), 6); o.Verdict != load.Allowed {
		t.Errorf("another key: %+v", o)
	}
}

// A brokenStore fails.
type brokenStore struct {
	headgate.Store
	err error
}

func (s brokenStore) Take(context.Context, headgate.Charge, ...headgate.Charge) (headgate.Decision, error) {
	return headgate.Decision{}, &headgate.StoreError{Op: "take", Err: s.err}
}

func TestKindsOfFailure(t *testing.T) {
	for _, tt := range []struct {
		err  error
		kind string
	}{
		{context.DeadlineExceeded, "timeout"},
		{&net.OpError{Op: "read", Err: timeout{}}, "timeout"},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, "connection"},
		{fmt.Errorf("read: %w", io.EOF), "connection"},
		{syscall.ECONNRESET, "connection"},
		{errors.New("OOM command not allowed"), "store"},
	} {
		o := load.NewStore(brokenStore{err: tt.err}, parse(t, "1/s")).Do(t.Context(), 0)
		if o.Verdict != load.Failed || o.Kind != tt.kind || !errors.Is(o.Err, tt.err) {
			t.Errorf("%v: %+v, want %s", tt.err, o, tt.kind)
		}
	}
}

type timeout struct{}

func (timeout) Error() string   { return "i/o timeout" }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return true }
