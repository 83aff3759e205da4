package outbound_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/outbound"
)

// call sends a request to a real server.
func call(t testing.TB, ctx context.Context, tr http.RoundTripper, url string) error {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = status(t, tr, req)
	return err
}

// What is counted as sent is what the upstream counts, over HTTP/1 and HTTP/2, whatever it answers.
func TestSentIsWhatArrives(t *testing.T) {
	for _, version := range []int{1, 2} {
		var arrived atomic.Int64
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor != version {
				t.Errorf("HTTP/%d, want %d", r.ProtoMajor, version)
			}
			if arrived.Add(1)%10 == 0 {
				w.WriteHeader(503)
			}
		}))
		server.EnableHTTP2, server.Config.ErrorLog = version == 2, slog.NewLogLogger(slog.DiscardHandler, 0)
		server.StartTLS()
		defer server.Close()
		l := limiterOn(t, inMemory(t), headgate.Config{}, "200/hour fixed-window")
		tr := transport(t, server.Client().Transport, l, outbound.Config{})
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				for range 50 {
					if err := call(t, t.Context(), tr, server.URL); err != nil && !errors.Is(err, outbound.ErrLimited) {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		server.Close() // now all that were sent have arrived, and have been counted
		got := tr.Counts()
		if got.Asked != 300 || got.Allowed != 200 || got.Limited != 100 || got.Sent != 200 || got.Refused != 20 || arrived.Load() != 200 {
			t.Errorf("HTTP/%d: counts %+v, %d arrived; want 200", version, got, arrived.Load())
		}
	}
}

// A request that finds nobody to connect to is given its token back, and counts as not sent.
func TestNobodyThere(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	plain := httptest.NewUnstartedServer(http.NotFoundHandler()) // speaks no TLS
	plain.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	plain.Start()
	defer plain.Close()
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	for _, limit := range []string{"5/hour", "5/hour fixed-window", "5/hour aligned-window", "5/hour sliding-window", "5/hour sliding-log"} {
		l := limiterOn(t, inMemory(t), headgate.Config{}, limit)
		tr := transport(t, base, l, outbound.Config{})
		for _, u := range []string{url, strings.Replace(plain.URL, "http:", "https:", 1)} {
			var limited *outbound.LimitedError
			if err := call(t, t.Context(), tr, u); err == nil || errors.As(err, &limited) {
				t.Errorf("%s: %v, want a connection that fails", limit, err)
			}
		}
		left(t, l, 5)
		if got := tr.Counts(); got.Allowed != 2 || got.Sent != 0 || got.Unsent != 2 {
			t.Errorf("%s: counts %+v", limit, got)
		}
	}
}

// A base that knows nothing of httptrace: a response says that the request was sent, a dial that failed that it was not, and after any other
// error nobody knows, so nothing is given back.
func TestBaseThatDoesNotTell(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: errors.New("refused")}
	broken := errors.New("broken")
	answers := []error{nil, refused, broken}
	up := newUpstream(func(n int, _ *http.Request) (*http.Response, error) {
		if err := answers[n-1]; err != nil {
			return nil, err
		}
		return respond(200), nil
	})
	l := limiterOn(t, inMemory(t), headgate.Config{}, "5/hour fixed-window")
	tr := transport(t, up, l, outbound.Config{})
	for _, want := range answers {
		if err := call(t, t.Context(), tr, "http://partner.example"); !errors.Is(err, want) {
			t.Errorf("error %v, want %v", err, want)
		}
	}
	left(t, l, 3)
	if got := tr.Counts(); got.Allowed != 3 || got.Sent != 1 || got.Unsent != 1 {
		t.Errorf("counts %+v", got)
	}
}

// A request that is given up once it was sent is spent, and counts as sent.
func TestGivenUpOnceSent(t *testing.T) {
	arrived := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	}))
	defer server.Close()
	l := limiterOn(t, inMemory(t), headgate.Config{}, "5/hour fixed-window")
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	tr := transport(t, base, l, outbound.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { <-arrived; cancel() }()
	if err := call(t, ctx, tr, server.URL); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	left(t, l, 4)
	if got := tr.Counts(); got.Sent != 1 || got.Unsent != 0 {
		t.Errorf("counts %+v", got)
	}
}

// A client of the standard library sees through its own error to the LimitedError.
func TestThroughAClient(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(429)
	}))
	defer server.Close()
	base := &http.Transport{}
	client := &http.Client{Transport: transport(t, base, limiterOn(t, inMemory(t), headgate.Config{}, "5/s"), outbound.Config{})}
	defer client.CloseIdleConnections()
	resp, err := client.Get(server.URL)
	if err != nil || resp.StatusCode != 429 {
		t.Fatalf("%v, want 429", err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
	_, err = client.Get(server.URL)
	var limited *outbound.LimitedError
	if !errors.As(err, &limited) || !limited.Paused || limited.RetryAfter <= 0 || limited.RetryAfter > 30*time.Second {
		t.Errorf("error %v, want a LimitedError for up to 30 s", err)
	}
}
