package meter_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/meter"
	"github.com/headgate/headgate/outbound"
)

func newMeter(t *testing.T) *meter.Meter {
	t.Helper()
	m, err := meter.New(meter.Options{Build: meter.Build{Version: "v1", Revision: "abc", Go: "go1"}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func page(t *testing.T, m *meter.Meter) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func wantLines(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains("\n"+text, "\n"+line+"\n") {
			t.Errorf("no line %s in\n%s", line, text)
		}
	}
}

func TestRouteCounts(t *testing.T) {
	m := newMeter(t)
	r := m.Route("/a")
	r.Sent()
	r.Sent()
	r.Over(2, 200, time.Millisecond) // the transport tried twice
	r.Over(0, 0, time.Second)
	r.Sent()
	r.Over(1, 0, time.Second)
	r.Sent()
	r.Over(1, 999, time.Second)
	m.Route("/a").Exempt()
	r.ObserveOutbound(context.Background(), outbound.Event{Kind: outbound.Paused})
	m.Route("/b")
	wantLines(t, page(t, m),
		`headgate_upstream_sent_total{route="/a"} 4`, `headgate_upstream_requests_total{code="2xx",route="/a"} 1`,
		`headgate_upstream_requests_total{code="error",route="/a"} 3`, `headgate_upstream_unsent_total{route="/a"} 1`,
		`headgate_exempt_total{route="/a"} 1`, `headgate_outbound_total{event="paused",route="/a"} 1`, `headgate_upstream_sent_total{route="/b"} 0`,
		`headgate_build_info{go="go1",revision="abc",version="v1"} 1`)
	if strings.Contains(page(t, m), `headgate_outbound_total{event="paused",route="/b"}`) {
		t.Error("a route that is not outbound has outbound series")
	}
}

// However many routes come and go with reloads, there is a bound on the series.
func TestRoutesAreBounded(t *testing.T) {
	m := newMeter(t)
	for i := range 1200 {
		m.Route(fmt.Sprint("/", i)).Sent()
	}
	text := page(t, m)
	if n := strings.Count(text, "\nheadgate_upstream_sent_total{"); n > 1001 {
		t.Errorf("%d routes, want at most 1001", n)
	}
	wantLines(t, text, `headgate_upstream_sent_total{route="other"} 200`)
}

func TestConfigSeries(t *testing.T) {
	m := newMeter(t)
	v := config.Version{Number: 3, Hash: "abc", Since: time.UnixMilli(1500), Failures: 2}
	m.Config(func() config.Version { return v })
	wantLines(t, page(t, m), `headgate_config_info{hash="abc",version="3"} 1`, "headgate_config_version 3", "headgate_config_last_reload_successful 1",
		"headgate_config_reload_failures_total 2", "headgate_config_since_seconds 1.5")
	v.LastError = "line 3"
	wantLines(t, page(t, m), "headgate_config_last_reload_successful 0")
}

// fixed is a store with one answer.
type fixed struct{ err error }

func (s fixed) Take(context.Context, headgate.Charge, ...headgate.Charge) (headgate.Decision, error) {
	return headgate.Decision{Allowed: true}, s.err
}
func (s fixed) Refund(context.Context, headgate.Charge, ...headgate.Charge) error { return s.err }
func (s fixed) Reset(context.Context, headgate.Charge, ...headgate.Charge) error  { return s.err }

func TestStoreSeries(t *testing.T) {
	m := newMeter(t)
	charge := headgate.Charge{Key: "k", Cost: 1, Limit: headgate.PerSecond(1)}
	good, err := m.Store(fixed{})
	if err != nil {
		t.Fatal(err)
	}
	if d, err := good.Take(t.Context(), charge); !d.Allowed || err != nil {
		t.Errorf("%+v, %v", d, err)
	}
	bad, err := m.Store(fixed{headgate.ErrStore})
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := bad.Take(gone, charge); err == nil { // says nothing about the store
		t.Error("no error")
	}
	if bad.Refund(t.Context(), charge) == nil || bad.Reset(t.Context(), charge) == nil {
		t.Error("no error")
	}
	wantLines(t, page(t, m), `headgate_store_seconds_count{op="take",result="ok"} 1`, `headgate_store_seconds_count{op="take",result="error"} 0`,
		`headgate_store_seconds_count{op="refund",result="error"} 1`, `headgate_store_seconds_count{op="reset",result="error"} 1`)
}

func TestMemorySeries(t *testing.T) {
	m := newMeter(t)
	memory, err := headgate.NewMemory(headgate.MemoryConfig{MaxKeys: 100})
	if err != nil {
		t.Fatal(err)
	}
	store, err := m.Store(memory)
	if err != nil || store != headgate.Store(memory) {
		t.Fatalf("%v, %v; want the memory itself", store, err)
	}
	for i := range 10_000 {
		if _, err := store.Take(t.Context(), headgate.Charge{Key: fmt.Sprint(i), Cost: 1, Limit: headgate.PerHour(1)}); err != nil {
			t.Fatal(err)
		}
	}
	text := page(t, m)
	wantLines(t, text, fmt.Sprint("headgate_memory_keys ", memory.Len()), fmt.Sprint("headgate_memory_evicted_total ", memory.Evicted()))
	if memory.Evicted() == 0 {
		t.Error("nothing was evicted")
	}
}
