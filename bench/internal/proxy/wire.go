package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
)

// Callers and upstream speak just enough HTTP/1.1 that most of the work is left to the proxies.
const (
	request  = "GET /some/path?q=1 HTTP/1.1\r\nHost: api.example.com\r\nUser-Agent: headgate-bench\r\nAccept: */*\r\nX-Api-Key: " + apiKey + "\r\n\r\n"
	response = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{\"ok\": true}\n"
	apiKey   = "bench-key"
)

// A connection is kept by one caller at a time.
type connection struct {
	net.Conn
	r *bufio.Reader
}

func dial(ctx context.Context, address string) (*connection, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &connection{Conn: c, r: bufio.NewReader(c)}, nil
}

// call sends the request and reads a response, which must be 200.
func (c *connection) call() error {
	if _, err := io.WriteString(c, request); err != nil {
		return err
	}
	status, err := c.r.ReadSlice('\n')
	if err != nil {
		return err
	}
	ok := bytes.HasPrefix(status, []byte("HTTP/1.1 200 "))
	if !ok {
		err = fmt.Errorf("the response begins with %q, want 200", status)
	}
	length, errFields := fields(c.r)
	if errFields != nil {
		return errFields
	}
	if _, errBody := c.r.Discard(length); errBody != nil {
		return errBody
	}
	return err
}

var errNoLength = errors.New("a message without a length that can be read")

// fields reads the fields of a message and returns the length of its content.
func fields(r *bufio.Reader) (int, error) {
	length := 0
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		name, value, found := bytes.Cut(bytes.TrimSpace(line), []byte(":"))
		switch {
		case !found:
			return length, nil
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return 0, errors.Join(errNoLength, err)
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			return 0, errNoLength
		}
	}
}

// Upstream is the job of a worker: a server that gives every request without content the same response.
func Upstream(ctx context.Context, _ []byte, out io.Writer) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, l.Addr()); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	var serving sync.WaitGroup
	defer serving.Wait()
	for {
		c, err := l.Accept()
		if err != nil {
			return nil // the end
		}
		serving.Go(func() { answer(ctx, c) })
	}
}

// answer answers until the caller goes away or ctx ends.
func answer(ctx context.Context, c net.Conn) {
	defer func() { _ = c.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	r := bufio.NewReader(c)
	for {
		if _, err := r.ReadSlice('\n'); err != nil {
			return
		}
		if _, err := fields(r); err != nil {
			return
		}
		if _, err := io.WriteString(c, response); err != nil {
			return
		}
	}
}
