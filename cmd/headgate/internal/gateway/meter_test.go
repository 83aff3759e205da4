package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/gateway"
	"github.com/headgate/headgate/cmd/headgate/internal/meter"
)

// metered is serveTo with a meter that can be read.
func metered(t *testing.T, text string, store headgate.Store, upstream string) (url string, m *meter.Meter) {
	t.Helper()
	m = newMeter(t)
	if store == nil {
		store = memory(t)
	}
	front := httptest.NewServer(newGateway(t, parse(t, text, upstream), gateway.Options{Store: store, Meter: m}))
	t.Cleanup(front.Close)
	return front.URL, m
}

func newMeter(t *testing.T) *meter.Meter {
	t.Helper()
	m, err := meter.New(meter.Options{Visit: gateway.Visit})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// scrape returns what the meter serves: by series, as in `headgate_x{a="b"}`, the text of its value.
func scrape(t *testing.T, m *meter.Meter) map[string]string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("metrics: %d %s", w.Code, w.Body)
	}
	out := make(map[string]string)
	for line := range strings.Lines(w.Body.String()) {
		if i := strings.LastIndexByte(line, ' '); i > 0 && line[0] != '#' {
			out[line[:i]] = strings.TrimSpace(line[i+1:])
		}
	}
	return out
}

func wantSeries(t *testing.T, got map[string]string, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s = %q, want %s", name, got[name], value)
		}
	}
}

func TestMetrics(t *testing.T) {
	var served atomic.Int64
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		if r.URL.Path == "/teapot" {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	t.Cleanup(up.Close)
	url, m := metered(t, file, nil, up.URL)
	for range 7 { // two of them are denied
		do(t, "GET", url+"/x", key("globex-key"))
	}
	do(t, "GET", url+"/teapot", key("acme-key"))
	do(t, "GET", url+"/only", key("globex-key"))
	do(t, "GET", url, key("nobody's"))
	do(t, "GET", url+"//only", key("acme-key"))
	do(t, "OPTIONS", url+"/x", header("Origin", "http://example.com"), header("Access-Control-Request-Method", "GET"))
	got := scrape(t, m)
	wantSeries(t, got, map[string]string{
		`headgate_decisions_total{decision="allowed",limit="free/hour",route="/",source="store"}`: "5",
		`headgate_decisions_total{decision="denied",limit="free/hour",route="/",source="store"}`:  "2",
		`headgate_decisions_total{decision="allowed",limit="pro/hour",route="/",source="store"}`:  "1",
		`headgate_exempt_total{route="/"}`:                         "1",
		`headgate_upstream_sent_total{route="/"}`:                  "7",
		`headgate_upstream_sent_total{route="/only"}`:              "0",
		`headgate_upstream_requests_total{code="2xx",route="/"}`:   "6",
		`headgate_upstream_requests_total{code="4xx",route="/"}`:   "1",
		`headgate_upstream_requests_total{code="error",route="/"}`: "0",
		`headgate_upstream_unsent_total{route="/"}`:                "0",
		`headgate_upstream_in_flight{route="/"}`:                   "0",
		`headgate_upstream_seconds_count{route="/"}`:               "7",
		`headgate_refused_total{reason="forbidden"}`:               "1",
		`headgate_refused_total{reason="unidentified"}`:            "1",
		`headgate_refused_total{reason="ambiguous_path"}`:          "1",
		`headgate_breaker_state`:                                   "0",
		`headgate_config_info{hash="",version="1"}`:                "1",
		`headgate_config_last_reload_successful`:                   "1",
		`headgate_decision_seconds_count{source="store"}`:          "8",
	})
	if served.Load() != 7 {
		t.Errorf("the upstream served %d, want 7", served.Load())
	}
	for name := range got {
		if strings.Contains(name, "acme") || strings.Contains(name, "globex") {
			t.Errorf("a tenant names a series: %s", name)
		}
	}
	top := m.Top().Most(time.Now(), 5)
	if len(top.Denied) != 1 || top.Denied[0] != (meter.Top{Tenant: "globex", Count: 2}) || len(top.Allowed) != 2 || top.Allowed[0].Count != 5 {
		t.Errorf("top %+v, want globex denied twice and allowed five times, acme once", top)
	}
}

// Whoever asks the limiters with limits of his own, as the decision API lets him, cannot use up the values of a label.
func TestLimitsOfOthersAreCountedTogether(t *testing.T) {
	c, m := observed(t)
	for i := range 3000 {
		limit := headgate.PerHour(int64(i + 1))
		if i%2 == 0 {
			limit.Name = fmt.Sprint("made up ", i)
		}
		if _, err := c.Take(t.Context(), headgate.Charge{Key: "k", Cost: 1, Limit: limit}); err != nil {
			t.Fatal(err)
		}
	}
	limit := headgate.PerHour(1000)
	limit.Name = "pro/hour"
	if _, err := c.Take(t.Context(), headgate.Charge{Key: "k", Cost: 1, Limit: limit}); err != nil {
		t.Fatal(err)
	}
	wantSeries(t, scrape(t, m), map[string]string{
		`headgate_decisions_total{decision="allowed",limit="api",route="",source="store"}`:      "3000",
		`headgate_decisions_total{decision="allowed",limit="pro/hour",route="",source="store"}`: "1",
	})
}

// observed returns a limiter of a gateway, and the meter that observes it.
func observed(t *testing.T) (*headgate.Limiter, *meter.Meter) {
	t.Helper()
	m := newMeter(t)
	g := newGateway(t, parse(t, file, "http://127.0.0.1:1"), gateway.Options{Store: memory(t), Meter: m})
	return g.Limiter(headgate.FailClosed), m
}

// What never leaves is not counted as sent, and what leaves and fails is.
func TestSentIsCountedWhereItLeaves(t *testing.T) {
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	}))
	url, m := metered(t, file, nil, broken.URL)
	if resp, _ := do(t, "POST", url, key("acme-key")); resp.StatusCode != http.StatusBadGateway {
		t.Errorf("status %d, want 502", resp.StatusCode)
	}
	wantSeries(t, scrape(t, m), map[string]string{
		`headgate_upstream_sent_total{route="/"}`: "1", `headgate_upstream_requests_total{code="error",route="/"}`: "1", `headgate_upstream_unsent_total{route="/"}`: "0",
	})
	broken.Close()
	if resp, _ := do(t, "POST", url, key("acme-key")); resp.StatusCode != http.StatusBadGateway {
		t.Errorf("status %d, want 502", resp.StatusCode)
	}
	wantSeries(t, scrape(t, m), map[string]string{
		`headgate_upstream_sent_total{route="/"}`: "1", `headgate_upstream_requests_total{code="error",route="/"}`: "1", `headgate_upstream_unsent_total{route="/"}`: "1",
		`headgate_decisions_total{decision="allowed",limit="pro/hour",route="/",source="store"}`: "2",
	})
}

// In flight is what the upstream has not answered.
func TestInFlight(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		begun <- struct{}{}
		<-end
		_, _ = io.WriteString(w, "done")
	}))
	t.Cleanup(up.Close)
	url, m := metered(t, file, nil, up.URL)
	var over sync.WaitGroup
	over.Go(func() { do(t, "GET", url, key("acme-key")) })
	<-begun
	wantSeries(t, scrape(t, m), map[string]string{`headgate_upstream_in_flight{route="/"}`: "1", `headgate_upstream_sent_total{route="/"}`: "1"})
	close(end)
	over.Wait()
}

func TestMetricsOfAnOutage(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(hello))
	t.Cleanup(up.Close)
	url, m := metered(t, `
identity: {anonymous: share}
store: {redis: {url: "redis://127.0.0.1:1"}}
routes:
  - {path: /open, upstream: "UPSTREAM", limits: ["9/hour"], on_store_error: open}
  - {path: /closed, upstream: "UPSTREAM", limits: ["9/hour"], on_store_error: closed}
  - {path: /local, upstream: "UPSTREAM", limits: ["2/hour"], on_store_error: local}
`, downStore{}, up.URL)
	for range 3 {
		do(t, "GET", url+"/open")
		do(t, "GET", url+"/closed")
		do(t, "GET", url+"/local")
	}
	wantSeries(t, scrape(t, m), map[string]string{
		`headgate_decisions_total{decision="allowed",limit="/open tenant/hour",route="/open",source="open"}`:      "3",
		`headgate_decisions_total{decision="denied",limit="/closed tenant/hour",route="/closed",source="closed"}`: "3",
		`headgate_decisions_total{decision="allowed",limit="/local tenant/hour",route="/local",source="local"}`:   "2",
		`headgate_decisions_total{decision="denied",limit="/local tenant/hour",route="/local",source="local"}`:    "1",
		`headgate_store_errors_total{reason="failed"}`:                                                            "9",
		`headgate_upstream_sent_total{route="/closed"}`:                                                           "0",
	})
	if top := m.Top().Most(time.Now(), 5); len(top.Denied) != 1 || top.Denied[0].Count != 1 || len(top.Allowed) != 1 || top.Allowed[0].Count != 2 {
		t.Errorf("top %+v, want the local decisions alone", top)
	}
}
