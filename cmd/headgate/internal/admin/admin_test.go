package admin_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/admin"
)

func TestHealth(t *testing.T) {
	a := admin.New()
	ask := func(method, path string) int {
		w := httptest.NewRecorder()
		a.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		return w.Code
	}
	if got := ask("GET", "/healthz"); got != http.StatusOK {
		t.Errorf("healthz %d, want 200", got)
	}
	if got := ask("POST", "/healthz"); got != http.StatusMethodNotAllowed {
		t.Errorf("POST healthz %d, want 405", got)
	}
	if got := ask("GET", "/"); got != http.StatusNotFound {
		t.Errorf("/ %d, want 404", got)
	}
	a.Drain()
	if got := ask("GET", "/healthz"); got != http.StatusServiceUnavailable {
		t.Errorf("healthz while draining %d, want 503", got)
	}
}
