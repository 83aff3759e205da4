package outbound_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/outbound"
)

// A body notes how much of it was read, and that it was closed.
type body struct {
	io.Reader
	read, closed atomic.Int64
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.read.Add(int64(n))
	return n, err
}

func (b *body) Close() error { b.closed.Add(1); return nil }

func bodyOf(size int) *body { return &body{Reader: strings.NewReader(strings.Repeat("x", size))} }

// Which requests are sent again, with Retries: 1 and an answer that comes once.
func TestResend(t *testing.T) {
	type edit = func(*http.Request)
	plain := func(*http.Request) {}
	again := func(r *http.Request) {
		r.Body = io.NopCloser(strings.NewReader("hello"))
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("hello")), nil }
	}
	tests := []struct {
		name   string
		method string
		edit   edit
		status int
		after  string
		want   int // requests that arrive
	}{
		{"GET, 429", "GET", plain, 429, "1", 2},
		{"GET, 503", "GET", plain, 503, "1", 2},
		{"GET, 500", "GET", plain, 500, "1", 1},
		{"GET, 429 without a time", "GET", plain, 429, "", 1},
		{"GET, 503 without a time", "GET", plain, 503, "", 1},
		{"GET, 429, now", "GET", plain, 429, "0", 2},
		{"GET, longer than MaxWait", "GET", plain, 429, "11", 1},
		{"no method", "", plain, 503, "1", 2},
		{"DELETE, 503", "DELETE", plain, 503, "1", 2},
		{"POST, 429", "POST", plain, 429, "1", 2},
		{"POST, 503", "POST", plain, 503, "1", 1},
		{"POST, 503, idempotent", "POST", func(r *http.Request) { r.Header.Set("Idempotency-Key", "1") }, 503, "1", 2},
		{"POST, body to be had again", "POST", again, 429, "1", 2},
		{"POST, body gone", "POST", func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("hello")) }, 429, "1", 1},
		{"PUT, body gone, 503", "PUT", func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("hello")) }, 503, "1", 1},
		{"PUT, no body", "PUT", func(r *http.Request) { r.Body = http.NoBody }, 503, "1", 2},
		{"body that cannot be had after all", "PUT", func(r *http.Request) {
			r.Body = io.NopCloser(strings.NewReader("hello"))
			r.GetBody = func() (io.ReadCloser, error) { return nil, errors.New("gone") }
		}, 429, "1", 1},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			var bodies []string
			refused := bodyOf(100)
			up := newUpstream(func(n int, r *http.Request) (*http.Response, error) {
				if r.Body != nil {
					text, _ := io.ReadAll(r.Body)
					bodies = append(bodies, string(text))
				}
				if n > 1 {
					return respond(200), nil
				}
				resp := respond(tt.status)
				if tt.after != "" {
					resp.Header.Set("Retry-After", tt.after)
				}
				resp.Body = refused
				return resp, nil
			})
			l := limiterOn(t, inMemory(t), headgate.Config{}, "10/hour fixed-window")
			tr := transport(t, up, l, outbound.Config{MaxWait: 10 * time.Second, Retries: 1, Jitter: -1})
			req := get(t, t.Context(), "/")
			req.Method = tt.method
			tt.edit(req)
			got, err := status(t, tr, req)
			want := 200
			if tt.want == 1 {
				want = tt.status
			}
			if err != nil || got != want || len(up.at) != tt.want {
				t.Errorf("%s: status %d (%v) after %d arrived, want %d after %d", tt.name, got, err, len(up.at), want, tt.want)
			}
			if refused.closed.Load() != 1 || tt.want == 2 && refused.read.Load() != 100 {
				t.Errorf("%s: the refusal's body was closed %d times, %d bytes read", tt.name, refused.closed.Load(), refused.read.Load())
			}
			for _, b := range bodies {
				if b != "hello" && b != "" {
					t.Errorf("%s: bodies %q", tt.name, bodies)
				}
			}
			left(t, l, 10-int64(tt.want))
			if c := tr.Counts(); c.Sent != int64(tt.want) || c.Resent != int64(tt.want)-1 {
				t.Errorf("%s: counts %+v", tt.name, c)
			}
		})
	}
}

// Without Retries nothing is sent again.
func TestNothingIsResentByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := newUpstream(once(429, "Retry-After", "1"))
		mustStatus(t, transport(t, up, limiterOn(t, inMemory(t), headgate.Config{}), outbound.Config{MaxWait: time.Minute}), 429)
		if len(up.at) != 1 {
			t.Errorf("%d arrived", len(up.at))
		}
	})
}

func TestRetriesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := newUpstream(func(int, *http.Request) (*http.Response, error) { return respond(429, "Retry-After", "1"), nil })
		tr := transport(t, up, limiterOn(t, inMemory(t), headgate.Config{}), outbound.Config{MaxWait: time.Minute, Retries: 3, Jitter: -1})
		mustStatus(t, tr, 429)
		if len(up.at) != 4 || up.at[3] != 3*time.Second {
			t.Errorf("arrived at %v", up.at)
		}
	})
}

// Of a refusal's body no more than its bound is read.
func TestLongRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := bodyOf(1 << 20)
		up := newUpstream(func(n int, _ *http.Request) (*http.Response, error) {
			if n > 1 {
				return respond(200), nil
			}
			resp := respond(429, "Retry-After", "0")
			resp.Body = refused
			return resp, nil
		})
		mustStatus(t, transport(t, up, limiterOn(t, inMemory(t), headgate.Config{}), outbound.Config{MaxWait: time.Minute, Retries: 1}), 200)
		if refused.read.Load() != 64<<10 || refused.closed.Load() != 1 {
			t.Errorf("%d bytes were read, closed %d times", refused.read.Load(), refused.closed.Load())
		}
	})
}

// Where the request cannot be sent again in time after all, its response is returned; where nobody waits for it any more, it is closed.
func TestResendThatComesToNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := bodyOf(100)
		answer := func(int, *http.Request) (*http.Response, error) {
			resp := respond(429, "Retry-After", "2")
			resp.Body = refused
			return resp, nil
		}
		l := limiterOn(t, inMemory(t), headgate.Config{}, "1/m")
		tr := transport(t, newUpstream(answer), l, outbound.Config{MaxWait: 10 * time.Second, Retries: 1})
		mustStatus(t, tr, 429) // the pause is over in time, and then the limit has no room
		if refused.read.Load() != 0 || refused.closed.Load() != 1 {
			t.Errorf("%d bytes were read, closed %d times", refused.read.Load(), refused.closed.Load())
		}
		time.Sleep(time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := status(t, tr, get(t, ctx, "/")); err != context.Canceled {
			t.Errorf("error %v, want context.Canceled", err)
		}
		if refused.closed.Load() != 2 {
			t.Errorf("closed %d times", refused.closed.Load())
		}
	})
}

// A body is closed when its request is not sent, as it is when it is.
func TestBodiesAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := errors.New("who pays?")
		nobody := func(*http.Request) (string, error) { return "", bad }
		l := limiterOn(t, inMemory(t), headgate.Config{}, "0/s")
		for want, tr := range map[error]*outbound.Transport{
			bad:                 transport(t, newUpstream(nil), l, outbound.Config{Key: nobody}),
			outbound.ErrLimited: transport(t, newUpstream(nil), l, outbound.Config{}),
		} {
			b := bodyOf(1)
			req := get(t, t.Context(), "/")
			req.Body = b
			if _, err := status(t, tr, req); !errors.Is(err, want) || b.closed.Load() != 1 {
				t.Errorf("error %v, want %v; the body was closed %d times", err, want, b.closed.Load())
			}
		}
	})
}
