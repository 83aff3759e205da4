package admin_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/admin"
)

// health is what an answer says.
type health struct {
	Status  string
	Reasons []string
}

func askHealth(t *testing.T, h http.Handler, method, path string) (int, health) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	var body health
	if w.Code == http.StatusOK || w.Code == http.StatusServiceUnavailable {
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %s (%v) %v", path, w.Body, err, w.Header())
		}
	}
	return w.Code, body
}

func TestHealth(t *testing.T) {
	amiss := ""
	h := admin.NewHealth(func(context.Context) string { return "" }, func(context.Context) string { return amiss })
	a := admin.New(h)
	want := func(path string, status int, says string, reasons ...string) {
		t.Helper()
		got, body := askHealth(t, a, "GET", path)
		if got != status || body.Status != says || !slices.Equal(body.Reasons, reasons) {
			t.Errorf("%s: %d %+v, want %d %s %q", path, got, body, status, says, reasons)
		}
	}
	want("/healthz", 200, "ok")
	want("/readyz", 200, "ready")
	amiss = "the store is away"
	want("/healthz", 200, "ok")
	want("/readyz", 200, "degraded", "the store is away")
	h.Drain()
	want("/readyz", 503, "draining")
	want("/healthz", 200, "ok") // it is alive, and is not to be killed while it finishes
	if got, _ := askHealth(t, a, "POST", "/healthz"); got != http.StatusMethodNotAllowed {
		t.Errorf("POST healthz %d, want 405", got)
	}
	if got, _ := askHealth(t, a, "GET", "/"); got != http.StatusNotFound {
		t.Errorf("/ %d, want 404", got)
	}
}

func TestJSON(t *testing.T) {
	a := admin.New(admin.NewHealth())
	a.Handle("/v1/config", admin.JSON(func() any { return map[string]string{"status": "v"} }))
	if got, body := askHealth(t, a, "GET", "/v1/config"); got != 200 || body.Status != "v" {
		t.Errorf("%d %+v", got, body)
	}
	if got, _ := askHealth(t, a, "POST", "/v1/config"); got != http.StatusMethodNotAllowed {
		t.Errorf("POST %d, want 405", got)
	}
}
