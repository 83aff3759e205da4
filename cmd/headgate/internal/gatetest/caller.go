package gatetest

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"
)

// A Caller is whom requests come from. The zero value calls by [http.DefaultClient].
type Caller struct {
	Client  *http.Client  // nil = http.DefaultClient
	Timeout time.Duration // of a request with its answer; 0 = Patience
}

// Send sends a request, which edit changes before, and returns the response with its body read and closed. A body of nil is none. It ends the
// test if there is no whole answer in time.
func (c Caller) Send(t testing.TB, method, url string, body io.Reader, edit ...func(*http.Request)) (*http.Response, string) {
	t.Helper()
	if c.Client == nil {
		c.Client = http.DefaultClient
	}
	if c.Timeout == 0 {
		c.Timeout = Patience
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range edit {
		f(r)
	}
	resp, err := c.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}
