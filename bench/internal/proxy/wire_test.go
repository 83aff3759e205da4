package proxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
)

func TestUpstream(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, w := io.Pipe()
	ended := make(chan error)
	go func() { ended <- Upstream(ctx, nil, w) }()
	address, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	c, err := dial(ctx, strings.TrimSpace(address))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	for range 3 { // over one connection
		if err := c.call(); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := c.call(); err == nil {
		t.Error("the upstream still answers")
	}
}

func TestCall(t *testing.T) {
	for text, want := range map[string]string{
		response: "",
		"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 2\r\n\r\nno":  "429",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n": errNoLength.Error(),
		"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n":                errNoLength.Error(),
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n1234":               "EOF",
		"HTTP/1.1 200 OK\r\nContent-Le":                                  "EOF",
	} {
		ours, theirs := net.Pipe()
		go func() {
			defer func() { _ = theirs.Close() }()
			r := bufio.NewReader(theirs)
			if _, err := r.ReadSlice('\n'); err != nil {
				return
			}
			if _, err := fields(r); err == nil {
				_, _ = io.WriteString(theirs, text)
			}
		}()
		c := &connection{Conn: ours, r: bufio.NewReader(ours)}
		if err := c.call(); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
		_ = ours.Close()
	}
}

func TestFields(t *testing.T) {
	n, err := fields(bufio.NewReader(strings.NewReader("X: 1\r\ncontent-length:  7\r\n\r\n")))
	if n != 7 || err != nil {
		t.Errorf("%d, %v; want 7", n, err)
	}
	if _, err := fields(bufio.NewReader(strings.NewReader("X: 1\r\n"))); !errors.Is(err, io.EOF) {
		t.Errorf("error %v, want EOF", err)
	}
}

func TestConfig(t *testing.T) {
	inMemory, inRedis := config("http://127.0.0.1:1", ""), config("http://127.0.0.1:1", "redis://127.0.0.1:2/0")
	if strings.Contains(inMemory, "redis") || strings.Contains(inMemory, "on_store_error") {
		t.Errorf("without Redis:\n%s", inMemory)
	}
	if !strings.Contains(inRedis, `"redis://127.0.0.1:2/0"`) || !strings.Contains(inRedis, "on_store_error: closed") {
		t.Errorf("with Redis:\n%s", inRedis)
	}
}
