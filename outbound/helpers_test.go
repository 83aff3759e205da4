package outbound_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/outbound"
)

func inMemory(t testing.TB) *headgate.Memory {
	t.Helper()
	m, err := headgate.NewMemory(headgate.MemoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// limiterOn returns a limiter with limits in their text form.
func limiterOn(t testing.TB, store headgate.Store, cfg headgate.Config, limits ...string) *headgate.Limiter {
	t.Helper()
	cfg.Logger = slog.New(slog.DiscardHandler)
	list := make([]headgate.Limit, len(limits))
	for i, text := range limits {
		var err error
		if list[i], err = headgate.ParseLimit(text); err != nil {
			t.Fatal(err)
		}
	}
	l, err := headgate.New(store, list, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func partner(*http.Request) (string, error) { return "partner", nil }

// transport returns a Transport; a Key that is not set is that of the partner.
func transport(t testing.TB, base http.RoundTripper, l *headgate.Limiter, cfg outbound.Config) *outbound.Transport {
	t.Helper()
	if cfg.Key == nil && cfg.Charges == nil {
		cfg.Key = partner
	}
	tr, err := outbound.NewTransport(base, l, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// left checks what the partner has left under the limiter's limits.
func left(t testing.TB, l *headgate.Limiter, want int64) {
	t.Helper()
	if d, err := l.Peek(context.Background(), "partner"); err != nil || d.Remaining != want {
		t.Errorf("%d left (%v), want %d", d.Remaining, err, want)
	}
}

// An upstream is a base that answers by itself and notes when it was asked, and for what. It knows nothing of httptrace.
type upstream struct {
	begin  time.Time
	answer func(n int, req *http.Request) (*http.Response, error) // n counts from 1; nil = 200

	mu    sync.Mutex
	at    []time.Duration
	paths []string
}

func newUpstream(answer func(n int, req *http.Request) (*http.Response, error)) *upstream {
	return &upstream{begin: time.Now(), answer: answer}
}

func (u *upstream) RoundTrip(req *http.Request) (*http.Response, error) {
	u.mu.Lock()
	u.at = append(u.at, time.Since(u.begin))
	u.paths = append(u.paths, req.URL.Path)
	n := len(u.at)
	u.mu.Unlock()
	if u.answer == nil {
		return respond(200), nil
	}
	return u.answer(n, req)
}

func respond(status int, pairs ...string) *http.Response {
	r := &http.Response{StatusCode: status, Header: make(http.Header), Body: io.NopCloser(strings.NewReader("body"))}
	for i := 0; i+1 < len(pairs); i += 2 {
		r.Header.Add(pairs[i], pairs[i+1])
	}
	return r
}

// once answers the first request with status and fields, and all others with 200.
func once(status int, pairs ...string) func(int, *http.Request) (*http.Response, error) {
	return func(n int, _ *http.Request) (*http.Response, error) {
		if n == 1 {
			return respond(status, pairs...), nil
		}
		return respond(200), nil
	}
}

func get(t testing.TB, ctx context.Context, path string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://partner.example"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// status sends a request and returns the status of its response.
func status(t testing.TB, tr http.RoundTripper, req *http.Request) (int, error) {
	t.Helper()
	resp, err := tr.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
	return resp.StatusCode, nil
}

func mustStatus(t testing.TB, tr http.RoundTripper, want int) {
	t.Helper()
	if got, err := status(t, tr, get(t, context.Background(), "/")); err != nil || got != want {
		t.Errorf("status %d (%v), want %d", got, err, want)
	}
}

// mustLimit checks that a request fails with a LimitedError that says after.
func mustLimit(t testing.TB, tr http.RoundTripper, after time.Duration, paused bool) {
	t.Helper()
	_, err := status(t, tr, get(t, context.Background(), "/"))
	checkLimited(t, err, after, paused)
}

func checkLimited(t testing.TB, err error, after time.Duration, paused bool) {
	t.Helper()
	var limited *outbound.LimitedError
	if !errors.As(err, &limited) || !errors.Is(err, outbound.ErrLimited) || limited.RetryAfter != after || limited.Paused != paused {
		t.Errorf("error %v, want a LimitedError for %v (paused %v)", err, after, paused)
	}
}

// A crowd is requests that are under way, each in a goroutine of its own.
type crowd struct {
	t    testing.TB
	wg   sync.WaitGroup
	mu   sync.Mutex
	errs map[string]error
}

func newCrowd(t testing.TB) *crowd { return &crowd{t: t, errs: make(map[string]error)} }

// start sends a request and returns when it waits or has ended. For tests in a bubble.
func (c *crowd) start(ctx context.Context, tr http.RoundTripper, path string) {
	c.wg.Go(func() {
		if _, err := status(c.t, tr, get(c.t, ctx, path)); err != nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.errs[path] = err
		}
	})
	synctest.Wait()
}

// wait returns the errors of those that failed, by path.
func (c *crowd) wait() map[string]error {
	c.wg.Wait()
	return c.errs
}
