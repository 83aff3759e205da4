package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/config"
)

// The demo's API keys. They are public, and lead to nothing but the demo's own upstream.
const (
	demoFreeKey = "demo-free"
	demoProKey  = "demo-pro"
)

// demoConfig is the configuration of serve without a file, in the form that a file has.
const demoConfig = `
admin: 127.0.0.1:0
drain: 0s
plans:
  free: {limits: ["5/s burst 10"]}
  pro:  {limits: ["100/s"]}
tenants:
  - {name: demo-free, plan: free, api_key_sha256: "%s"}
  - {name: demo-pro, plan: pro, api_key_sha256: "%s"}
routes:
  - {path: /, upstream: "http://%s"}
`

// A demo is the built-in upstream and the configuration that leads to it.
type demo struct {
	listener net.Listener
	server   *http.Server
}

// newDemo listens on a free loopback port.
func newDemo(log *slog.Logger) (*demo, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("no port for the built-in upstream: %w", err)
	}
	return &demo{listener: l, server: &http.Server{
		Handler: http.HandlerFunc(echo), ReadHeaderTimeout: readHeaderTimeout, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}}, nil
}

// close frees the port of a demo that was never served.
func (d *demo) close() error {
	if err := d.listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

func (d *demo) addr() string { return d.listener.Addr().String() }

// config returns the demo's configuration.
func (d *demo) config() (*config.Config, error) {
	text := fmt.Sprintf(demoConfig, digestOf(demoFreeKey), digestOf(demoProKey), d.addr())
	return config.Parse("demo", []byte(text))
}

// echo tells what the upstream sees.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := json.Marshal(map[string]any{
		"message": "hello from the built-in upstream", "method": r.Method, "path": r.URL.Path, "query": r.URL.RawQuery,
		"forwarded_for": r.Header.Get("X-Forwarded-For"), "time": time.Now().UTC().Format(time.RFC3339Nano),
	})
	if err != nil {
		http.Error(w, "no answer", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(body, '\n')) // a caller that is gone needs no answer
}
