package admin_test

import (
	"net/http"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/admin"
)

// TestNoTokenNoOtherName: without a token the API answers this host alone, also where a page in a browser on it has a name of its own lead here.
func TestNoTokenNoOtherName(t *testing.T) {
	s := start(t, file, nil, func(o *admin.APIOptions) { o.Loopback = true })
	for host, want := range map[string]int{
		"localhost": 200, "LOCALHOST:9090": 200, "127.0.0.1:9090": 200, "127.1.2.3": 200, "[::1]:9090": 200, "[::ffff:127.0.0.1]": 200,
		"evil.example": 403, "evil.example:9090": 403, "127.0.0.1.evil.example": 403, "10.0.0.1:9090": 403, "localhost.evil.example": 403,
	} {
		a := s.post(t, "/v1/peek", two, func(r *http.Request) { r.Host = host })
		if a.StatusCode != want {
			t.Errorf("Host %s: %d %s, want %d", host, a.StatusCode, a.body, want)
		}
	}
}
