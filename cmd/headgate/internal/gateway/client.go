package gateway

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// A client is the caller's side of a request. It does not wait for ever for a caller who neither sends what is left of the body nor
// takes what is left of the response: while one of them is waited for, each byte has its time. Where nothing is waited for, as in a
// stream that is silent or a connection that was upgraded, there is no deadline.
type client struct {
	http.ResponseWriter
	control  http.ResponseController
	body     io.ReadCloser
	stall    time.Duration
	stalled  atomic.Bool // the caller stopped sending
	tooLarge atomic.Bool // the caller sent more than the route takes

	mu    sync.Mutex // no deadline is set once the request has ended: the connection may serve the next one
	whole bool       // the body has been read to its end
	ended bool
}

// newClient takes the place of w and of r's body. end must be called when the request has been served.
func newClient(w http.ResponseWriter, r *http.Request, stall time.Duration) *client {
	c := &client{ResponseWriter: w, control: *http.NewResponseController(w), stall: stall, body: r.Body}
	c.whole = r.Body == nil || r.Body == http.NoBody
	if !c.whole {
		r.Body = (*clientBody)(c)
	}
	_ = c.control.SetWriteDeadline(time.Time{}) // that of the request before; a writer without deadlines has none to clear
	return c
}

// limitBody makes reading fail beyond that many bytes.
func (c *client) limitBody(bytes int64) {
	if !c.whole {
		c.body = http.MaxBytesReader(c.ResponseWriter, c.body, bytes)
	}
}

// end bounds what the server does after the handler: it reads some of what is left of the body, and then sends what is left of the
// response.
func (c *client) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	now := time.Now()
	_ = c.control.SetWriteDeadline(now.Add(3 * c.stall))
	if !c.whole {
		_ = c.control.SetReadDeadline(now.Add(c.stall))
	}
}

// set sets a deadline, or clears it, unless the request has ended.
func (c *client) set(how func(time.Time) error, deadline time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		_ = how(deadline)
	}
}

// Write implements [http.ResponseWriter].
func (c *client) Write(b []byte) (int, error) {
	c.set(c.control.SetWriteDeadline, time.Now().Add(c.stall))
	n, err := c.ResponseWriter.Write(b)
	if err == nil {
		c.set(c.control.SetWriteDeadline, time.Time{})
	}
	return n, err
}

// FlushError is what [http.ResponseController] flushes by.
func (c *client) FlushError() error {
	c.set(c.control.SetWriteDeadline, time.Now().Add(c.stall))
	err := c.control.Flush()
	if err == nil {
		c.set(c.control.SetWriteDeadline, time.Time{})
	}
	return err
}

// Unwrap lets [http.ResponseController] see what is wrapped.
func (c *client) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// A clientBody is the body of a client's request.
type clientBody client

// Read implements [io.Reader].
func (b *clientBody) Read(p []byte) (int, error) {
	c := (*client)(b)
	c.set(c.control.SetReadDeadline, time.Now().Add(c.stall))
	n, err := c.body.Read(p)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.stalled.Store(true) // the deadline stays: what is left will not be waited for again
		return n, err
	case errors.As(err, &tooLarge):
		c.tooLarge.Store(true)
	case errors.Is(err, io.EOF):
		c.mu.Lock()
		c.whole = true
		c.mu.Unlock()
	}
	c.set(c.control.SetReadDeadline, time.Time{})
	return n, err
}

// Close implements [io.Closer].
func (b *clientBody) Close() error { return b.body.Close() }

// callersFault answers a request that failed because of what its caller sent, and says whether it was one.
func (v *visit) callersFault(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case v.client == nil:
		return false
	case v.client.tooLarge.Load():
		bodyTooLarge(w, r, v.route)
	case v.client.stalled.Load():
		requestTimeout(w, r)
	default:
		return false
	}
	return true
}
