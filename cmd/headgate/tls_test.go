package main_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/gatetest"
	"github.com/headgate/headgate/redisstore/redistest"
)

// openFile is a configuration that lets everybody in, with more at its top.
func openFile(more, upstream string) string {
	return more + "\nidentity: {anonymous: share}\nroutes: [{path: /, upstream: \"" + upstream + "\", limits: [\"100000/s\"]}]\n"
}

// echoProtocol is an upstream that tells which protocol the gateway was asked in.
func echoProtocol(t *testing.T) string {
	t.Helper()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("X-Forwarded-Proto"))
	}))
	t.Cleanup(up.Close)
	return up.URL
}

// shown returns the serial number of the certificate that a listener shows, and the protocol that it agrees to.
func shown(t *testing.T, url string, cfg *tls.Config) (serial int64, state tls.ConnectionState, err error) {
	t.Helper()
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: gatetest.Patience}, "tcp", strings.TrimPrefix(url, "https://"), cfg)
	if err != nil {
		return 0, state, err
	}
	defer func() { _ = conn.Close() }()
	state = conn.ConnectionState()
	return state.PeerCertificates[0].SerialNumber.Int64(), state, nil
}

// The listener speaks HTTPS and HTTP/2, nothing older than TLS 1.2, and shows a new certificate once its files hold one.
func TestTLS(t *testing.T) {
	a := newAuthority(t)
	cert, key := a.issue("gateway", 10)
	p := serve(t, "--config", write(t, "c.yaml", openFile(fmt.Sprintf("tls: {cert: %s, key: %s}\nh2c: false", cert, key), echoProtocol(t))))
	if !strings.HasPrefix(p.url, "https://") {
		t.Fatalf("the banner says %s", p.url)
	}
	for protocol, http2 := range map[string]bool{"HTTP/2.0": true, "HTTP/1.1": false} {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.pool}, ForceAttemptHTTP2: http2}, Timeout: gatetest.Patience}
		resp, err := client.Get(p.url)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != 200 || resp.Proto != protocol || string(body) != "https" {
			t.Errorf("%s: %d %s %q, %v", protocol, resp.StatusCode, resp.Proto, body, err)
		}
		client.CloseIdleConnections()
	}
	if _, _, err := shown(t, p.url, &tls.Config{RootCAs: a.pool, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}); err == nil {
		t.Error("TLS 1.1 was taken")
	}
	if _, state, err := shown(t, p.url, &tls.Config{RootCAs: a.pool, NextProtos: []string{"h2"}}); err != nil || state.NegotiatedProtocol != "h2" {
		t.Errorf("ALPN: %q, %v", state.NegotiatedProtocol, err)
	}
	a.write("gateway.crt", "CERTIFICATE", a.cert.Raw) // does not go with the key
	gatetest.Await(t, "word that the files do not go together", func() bool { return strings.Contains(p.stderr.String(), "the certificate was not reloaded") })
	if serial, _, err := shown(t, p.url, &tls.Config{RootCAs: a.pool}); err != nil || serial != 10 {
		t.Errorf("certificate %d, %v; want the one in use to stay", serial, err)
	}
	a.issue("gateway", 11)
	gatetest.Await(t, "the new certificate", func() bool {
		serial, _, err := shown(t, p.url, &tls.Config{RootCAs: a.pool})
		if err != nil {
			t.Fatal(err)
		}
		return serial == 11
	})
}

// A plain listener speaks HTTP/2 only if it is told to.
func TestH2C(t *testing.T) {
	for more, want := range map[string]bool{"h2c: true": true, "": false} {
		p := serve(t, "--config", write(t, "c.yaml", openFile(more, echoProtocol(t))))
		protocols := new(http.Protocols)
		protocols.SetUnencryptedHTTP2(true)
		client := &http.Client{Transport: &http.Transport{Protocols: protocols}, Timeout: gatetest.Patience}
		resp, err := client.Get(p.url)
		if err == nil {
			_ = resp.Body.Close()
		}
		if spoken := err == nil && resp.StatusCode == 200 && resp.ProtoMajor == 2; spoken != want {
			t.Errorf("%q: %v, %v; want HTTP/2 %v", more, resp, err, want)
		}
		if resp, _ := get(t, p.url, ""); resp.StatusCode != 200 || resp.ProtoMajor != 1 {
			t.Errorf("%q: HTTP/1.1: %v", more, resp)
		}
		client.CloseIdleConnections()
	}
}

func TestWrongCertificate(t *testing.T) {
	a := newAuthority(t)
	cert, _ := a.issue("one", 1)
	_, key := a.issue("two", 2)
	for _, pair := range [][2]string{{cert, key}, {cert, "none.key"}} {
		code, _, stderr := run(t, "serve", "--config", write(t, "c.yaml", openFile(fmt.Sprintf("tls: {cert: %s, key: %s}", pair[0], pair[1]), "http://127.0.0.1:1")))
		if code != 2 || !strings.Contains(stderr, "tls: ") {
			t.Errorf("%d %s, want 2 and tls", code, stderr)
		}
	}
}

// A header that is too large is refused.
func TestHeaderLimits(t *testing.T) {
	p := serve(t, "--config", write(t, "c.yaml", openFile("max_header: 8KiB", echoProtocol(t))))
	for size, want := range map[int]int{4 << 10: 200, 64 << 10: 431} {
		conn, err := net.DialTimeout("tcp", strings.TrimPrefix(p.url, "http://"), gatetest.Patience)
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.SetDeadline(time.Now().Add(gatetest.Patience)); err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: h\r\nX-Long: %s\r\n\r\n", strings.Repeat("x", size))
		}()
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || resp.StatusCode != want {
			t.Errorf("%d bytes: %v, %v; want %d", size, resp, err, want)
		}
		_ = conn.Close()
	}
}

// Redis behind TLS, with a CA of its own, that asks for a certificate of its clients.
func TestRedisTLS(t *testing.T) {
	a := newAuthority(t)
	serverCert, serverKey := a.issue("redis", 20)
	cert, key := a.issue("client", 21)
	_, port, err := net.SplitHostPort(gatetest.FreeAddr(t))
	if err != nil {
		t.Fatal(err)
	}
	redistest.Start(t, "tls-port "+port, "tls-cert-file "+serverCert, "tls-key-file "+serverKey, "tls-ca-cert-file "+a.file, "tls-auth-clients yes")
	serveOver := func(tls string) *process {
		return serve(t, "--config", write(t, "c.yaml", fmt.Sprintf(`
admin: 127.0.0.1:0
store: {redis: {url: "rediss://127.0.0.1:%s", timeout: 10s, %s}}
identity: {anonymous: share}
routes: [{path: /, upstream: %q, limits: ["2/hour"], on_store_error: closed}]
`, port, tls, echoProtocol(t))))
	}
	pair := fmt.Sprintf("cert: %s, key: %s", cert, key)
	for i, want := range []int{200, 200, 429} {
		if resp, body := get(t, serveOver("tls: {ca: "+a.file+", "+pair+"}").url, ""); resp.StatusCode != want {
			t.Errorf("gateway %d: %d %s, want %d", i+1, resp.StatusCode, body, want)
		}
	}
	for name, tls := range map[string]string{"an unknown CA": "tls: {" + pair + "}", "no client certificate": "tls: {ca: " + a.file + "}"} {
		p := serveOver(tls)
		if resp, _ := get(t, p.url, ""); resp.StatusCode != 503 {
			t.Errorf("%s: %d, want 503", name, resp.StatusCode)
		}
	}
	code, _, stderr := run(t, "serve", "--config", write(t, "c.yaml",
		`{store: {redis: {url: "rediss://127.0.0.1", tls: {ca: none.crt}}}, identity: {anonymous: share}, `+
			`routes: [{path: /, upstream: "http://127.0.0.1:1", limits: ["1/s"], on_store_error: open}]}`))
	if code != 2 || !strings.Contains(stderr, "store.redis.tls.ca: ") {
		t.Errorf("a CA that is not there: %d %s, want 2", code, stderr)
	}
}
