package redisstore_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/outbound"
	"github.com/headgate/headgate/redisstore"
	"github.com/headgate/headgate/redisstore/redistest"
)

// outlet returns a Transport with a client and a store of its own, as another process has them.
func outlet(t *testing.T, server *redistest.Server, base http.RoundTripper, cfg outbound.Config) *outbound.Transport {
	t.Helper()
	store := open(t, server.Client(), redisstore.Config{})
	limiter, err := headgate.New(store, []headgate.Limit{headgate.PerSecond(1000)}, headgate.Config{
		Timeout: 10 * time.Second, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Key = func(*http.Request) (string, error) { return "partner", nil }
	tr, err := outbound.NewTransport(base, limiter, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// send makes a request and returns its status.
func send(t *testing.T, tr http.RoundTripper, url string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(must(t), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Error(err)
		return 0
	}
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
	return resp.StatusCode
}

// An upstream that answers 429 with Retry-After: 2 hears nothing for 2 s, from anybody, and then from all who waited. What was counted as
// sent is what it counted.
func TestOutboundFleetIsSilent(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var refused time.Time
	var arrived []time.Duration // since refused
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if refused.IsZero() {
			refused = time.Now()
			w.Header().Set("Retry-After", "2")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		arrived = append(arrived, time.Since(refused))
	}))
	defer upstream.Close()
	server := redistest.Start(t)
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	const each = 15
	fleet := make([]*outbound.Transport, 3)
	for i := range fleet {
		fleet[i] = outlet(t, server, base, outbound.Config{MaxWait: 25 * time.Second})
	}
	if got := send(t, fleet[0], upstream.URL); got != http.StatusTooManyRequests {
		t.Fatalf("status %d, want 429", got)
	}
	var wg sync.WaitGroup
	for _, tr := range fleet {
		for range each {
			wg.Go(func() {
				if got := send(t, tr, upstream.URL); got != http.StatusOK {
					t.Errorf("status %d, want 200", got)
				}
			})
		}
	}
	wg.Wait()
	sent := int64(0)
	for _, tr := range fleet {
		sent += tr.Counts().Sent
	}
	slices.Sort(arrived)
	if len(arrived) != len(fleet)*each || sent != int64(1+len(arrived)) {
		t.Errorf("%d were counted as sent, %d and the first arrived", sent, len(arrived))
	}
	if first := arrived[0]; first < 2*time.Second {
		t.Errorf("one came after %v, want 2s of silence", first)
	}
	t.Logf("%d arrived from %v to %v after the refusal", len(arrived), arrived[0], arrived[len(arrived)-1])
}

// Many processes ask for pauses at once: the longest holds, and who comes later finds it.
func TestOutboundLongestPauseWins(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	fleet := make([]*outbound.Transport, 6)
	for i := range fleet {
		fleet[i] = outlet(t, server, nil, outbound.Config{})
	}
	const longest = 10 * time.Minute
	for round := range 10 {
		before := time.Now()
		var wg sync.WaitGroup
		for i, tr := range fleet {
			for j := range 4 {
				d := longest - time.Duration((round+i*4+j)%24)*time.Second
				wg.Go(func() { tr.Pause(must(t), "partner", d) })
			}
		}
		wg.Wait()
		left, err := outlet(t, server, nil, outbound.Config{}).Paused(must(t), "partner")
		if took := time.Since(before); err != nil || left > longest || left < longest-took {
			t.Errorf("round %d: paused for %v (%v), want %v less at most %v", round, left, err, longest, took)
		}
	}
}
