package outbound

import (
	"context"
	"errors"
	"net"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
)

// A watch finds out whether a request left the building. Its hooks may still be called when RoundTrip has returned.
type watch struct {
	transport *Transport
	ctx       context.Context
	looked    atomic.Bool // base looked for a connection, so it is one that tells what it does
	connected atomic.Bool // and got one

	mu       sync.Mutex
	wrote    bool
	presumed bool // it was counted since there is a response, before anything was heard of its header
}

// trace returns the context that a request is to be sent with.
func (w *watch) trace() context.Context {
	return httptrace.WithClientTrace(w.ctx, &httptrace.ClientTrace{
		GetConn:      func(string) { w.looked.Store(true) },
		GotConn:      func(httptrace.GotConnInfo) { w.connected.Store(true) },
		WroteHeaders: w.wroteHeaders,
	})
}

// wroteHeaders counts what left. In HTTP/2 it may come later than the response.
func (w *watch) wroteHeaders() {
	w.mu.Lock()
	counted := w.presumed
	w.wrote, w.presumed = true, false
	w.mu.Unlock()
	if !counted {
		w.transport.observe(w.ctx, Event{Kind: Sent})
	}
}

// answered notes that there is a response: so the request was sent, also if base does not tell.
func (w *watch) answered() {
	w.mu.Lock()
	presume := !w.wrote
	w.presumed = presume
	w.mu.Unlock()
	if presume {
		w.transport.observe(w.ctx, Event{Kind: Sent})
	}
}

// neverLeft says whether it is certain that a request which failed with err did not leave: there never was a connection to write it to. (Once
// there is one, it may be written even after RoundTrip has given up on it.)
func (w *watch) neverLeft(err error) bool {
	if w.connected.Load() {
		return false
	}
	var op *net.OpError
	return w.looked.Load() || errors.As(err, &op) && op.Op == "dial"
}
