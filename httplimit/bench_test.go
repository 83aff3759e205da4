package httplimit_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

// discard is a response that keeps its header alone.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}

func BenchmarkMiddleware(b *testing.B) {
	pass := headgate.Limit{Name: "pass", Count: 1e12, Period: time.Second}
	deny := headgate.Limit{Name: "deny", Algorithm: headgate.FixedWindow, Count: 1, Period: 300 * 24 * time.Hour}
	client, err := httplimit.NewClientIP(httplimit.ClientIPConfig{})
	if err != nil {
		b.Fatal(err)
	}
	nothing := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for _, bench := range []struct {
		name  string
		limit headgate.Limit
		cfg   httplimit.Config
	}{
		{"allowed", pass, httplimit.Config{}},
		{"denied", deny, httplimit.Config{}},
		{"allowed/client-ip", pass, httplimit.Config{Key: client.Key}},
		{"allowed/charges", pass, httplimit.Config{Charges: func(*http.Request) ([]headgate.Charge, error) {
			return []headgate.Charge{{Key: "one", Cost: 1, Limit: pass}}, nil
		}}},
		{"allowed/no-fields", pass, httplimit.Config{Fields: httplimit.NoFields}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			h := newMiddleware(b, newLimiter(b, nil, headgate.Config{}, bench.limit), bench.cfg)(nothing)
			w, r := &discard{header: http.Header{}}, get()
			h.ServeHTTP(w, r)
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(w, r)
			}
		})
	}
}
