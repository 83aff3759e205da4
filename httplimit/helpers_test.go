package httplimit_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

// script is a store that gives the decision it was told, so that fields can be checked to the byte.
type script struct {
	decision headgate.Decision
	err      error
	taken    []headgate.Charge
}

func (s *script) Take(_ context.Context, first headgate.Charge, more ...headgate.Charge) (headgate.Decision, error) {
	s.taken = append(append(s.taken, first), more...)
	return s.decision, s.err
}

func (s *script) Refund(context.Context, headgate.Charge, ...headgate.Charge) error { return nil }
func (s *script) Reset(context.Context, headgate.Charge, ...headgate.Charge) error  { return nil }

// states is the script of a request of several charges.
func states(list ...headgate.State) *script {
	return &script{decision: headgate.Decide(instant, list)}
}

func newLimiter(tb testing.TB, store headgate.Store, cfg headgate.Config, limits ...headgate.Limit) *headgate.Limiter {
	tb.Helper()
	if store == nil {
		memory, err := headgate.NewMemory(headgate.MemoryConfig{MaxKeys: 1 << 10})
		if err != nil {
			tb.Fatal(err)
		}
		store = memory
	}
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	limiter, err := headgate.New(store, limits, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return limiter
}

func newMiddleware(tb testing.TB, limiter *headgate.Limiter, cfg httplimit.Config) func(http.Handler) http.Handler {
	tb.Helper()
	if cfg.Key == nil && cfg.Charges == nil {
		cfg.Key = one
	}
	mw, err := httplimit.New(limiter, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return mw
}

// one makes all requests one caller's.
func one(*http.Request) (string, error) { return "one", nil }

// ok is a handler that answers 200 with "ok".
var ok = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })

func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func get() *http.Request { return httptest.NewRequest(http.MethodGet, "/", nil) }

// wantFields checks fields of a response; "" = the field is missing. Each must be there once.
func wantFields(t *testing.T, h http.Header, want map[string]string) {
	t.Helper()
	for name, value := range want {
		got := h.Values(name)
		switch {
		case value == "" && len(got) > 0:
			t.Errorf("%s: %q, want none", name, got)
		case value != "" && (len(got) != 1 || got[0] != value):
			t.Errorf("%s: %q, want %q", name, got, value)
		}
	}
}
