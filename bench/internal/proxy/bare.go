package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"
)

// A bareSpec says where a bare proxy sends requests.
type bareSpec struct{ Upstream string }

// Bare is the job of a worker: what a gateway without limits would be, with the settings of Headgate's transport.
func Bare(ctx context.Context, text []byte, out io.Writer) error {
	var spec bareSpec
	if err := json.Unmarshal(text, &spec); err != nil {
		return err
	}
	to, err := url.Parse(spec.Upstream)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	transport := &http.Transport{
		DialContext:       (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 256, DisableCompression: true, ResponseHeaderTimeout: 30 * time.Second,
	}
	defer transport.CloseIdleConnections()
	server := &http.Server{
		Handler: &httputil.ReverseProxy{Transport: transport, Rewrite: func(pr *httputil.ProxyRequest) {
			pr.SetURL(to)
			pr.SetXForwarded()
		}},
		ReadHeaderTimeout: 10 * time.Second,
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if _, err := fmt.Fprintln(out, l.Addr()); err != nil {
		return err
	}
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
