package admin_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/admin"
)

func TestProfilesAreThereOnlyWhenAskedFor(t *testing.T) {
	on := false
	h := admin.Profiles(func() bool { return on })
	ask := func(method, path string) int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		return w.Code
	}
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/goroutine?debug=1", "/debug/pprof/cmdline", "/debug/pprof/symbol"} {
		on = false
		if got := ask("GET", path); got != http.StatusNotFound {
			t.Errorf("%s while off: %d, want 404", path, got)
		}
		on = true
		if got := ask("GET", path); got != http.StatusOK {
			t.Errorf("%s while on: %d, want 200", path, got)
		}
	}
	if got := ask("POST", "/debug/pprof/profile"); got != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d, want 405", got)
	}
}
