package gateway_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/gatetest"
	"github.com/headgate/headgate/cmd/headgate/internal/gateway"
)

// bounded is file with this said about the route /.
func bounded(more string) string {
	return strings.Replace(file, `path: /, upstream: "UPSTREAM"`, `path: /, upstream: "UPSTREAM", `+more, 1)
}

// A received is what the upstream made of a body.
type received struct {
	bytes int64
	err   error
}

// collect is an upstream that reads the whole body.
func collect(got chan<- received) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		got <- received{n, err}
		hello(w, r)
	}
}

func post(t *testing.T, client *http.Client, url string, body io.Reader, length int64) (*http.Response, string) {
	t.Helper()
	measured := func(r *http.Request) { r.ContentLength = length }
	return gatetest.Caller{Client: client, Timeout: wait}.Send(t, http.MethodPost, url, body, measured, key("globex-key"))
}

// A body that says that it is too large is refused and not charged for; one that turns out to be is cut off, and the upstream never
// takes it for a whole one.
func TestMaxBody(t *testing.T) {
	const limit = 100_000
	got := make(chan received, 10)
	url := serve(t, bounded("max_body: 100000B"), nil, collect(got))
	for _, streamed := range []bool{false, true} {
		length := int64(limit)
		if streamed {
			length = -1
		}
		if resp, _ := post(t, http.DefaultClient, url, bytes.NewReader(make([]byte, limit)), length); resp.StatusCode != 200 {
			t.Errorf("streamed %v: a body of the limit: %d, want 200", streamed, resp.StatusCode)
		}
		if r := <-got; r.bytes != limit || r.err != nil {
			t.Errorf("streamed %v: the upstream got %+v", streamed, r)
		}
	}
	for range 10 { // the plan has 5 an hour, of which 3 are left
		resp, body := post(t, http.DefaultClient, url, bytes.NewReader(make([]byte, limit+1)), limit+1)
		wantProblem(t, resp, body, 413)
	}
	resp, body := post(t, http.DefaultClient, url, io.LimitReader(zeros{}, 20*limit), -1)
	wantProblem(t, resp, body, 413)
	if r := <-got; r.err == nil || r.bytes > limit {
		t.Errorf("the upstream got %+v of a body that is too large, want an error", r)
	}
	if resp, _ := do(t, "GET", url, key("globex-key")); resp.StatusCode != 200 {
		t.Errorf("after all that: %d, want 200", resp.StatusCode)
	}
}

// zeros has no end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// raw opens a connection and sends text.
func raw(t *testing.T, url, text string) net.Conn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", strings.TrimPrefix(url, "http://"), wait)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(wait)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn
}

const request = "%s / HTTP/1.1\r\nHost: h\r\nX-API-Key: %s\r\nContent-Length: %d\r\n\r\n"

// A caller that stops in the middle of a body gets 408, and its connection ends.
func TestCallerStopsSending(t *testing.T) {
	got := make(chan received, 1)
	url := serve(t, bounded("stall_timeout: 100ms"), nil, collect(got))
	in := bufio.NewReader(raw(t, url, fmt.Sprintf(request, "POST", "acme-key", 1000)+"abc"))
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	wantProblem(t, resp, string(body), 408)
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the connection: %v, want its end", err)
	}
	if r := <-got; r.err == nil {
		t.Error("the upstream took a part for the whole")
	}
}

// One that is turned away before its body is read does not hold its connection by never sending it.
func TestCallerThatIsTurnedAwayStopsSending(t *testing.T) {
	url := serve(t, `
plans: {p: {limits: ["1/hour"]}}
tenants: [{name: acme, plan: p, api_key_sha256: "ACME"}]
routes: [{path: /, upstream: "UPSTREAM", limits: ["0/s"], stall_timeout: 500ms}]`, nil, hello)
	in := bufio.NewReader(raw(t, url, fmt.Sprintf(request, "POST", "acme-key", 1000)))
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 429 {
		t.Errorf("%d, want 429", resp.StatusCode)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the connection: %v, want its end", err)
	}
}

// One that does not take its response does not hold the upstream's.
func TestCallerStopsReading(t *testing.T) {
	ended := make(chan struct{})
	url := serve(t, bounded("stall_timeout: 100ms"), nil, func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		_, _ = io.Copy(w, zeros{})
	})
	raw(t, url, fmt.Sprintf(request, "GET", "acme-key", 0))
	select {
	case <-ended:
	case <-time.After(wait):
		t.Error("the upstream still writes to a caller that does not read")
	}
}

// A body that arrives slowly, and an upstream that takes it slowly, are no stall.
func TestSlowIsNotStalled(t *testing.T) {
	t.Parallel()
	const pieces = 4
	pause := 700 * time.Millisecond // between pieces, less than the time-out; all of them take longer
	got := make(chan received, 1)
	url := serve(t, bounded("stall_timeout: 2s"), nil, collect(got))
	body, in := io.Pipe()
	go func() {
		for range pieces {
			_, _ = io.WriteString(in, "piece")
			<-time.After(pause)
		}
		_ = in.Close()
	}()
	if resp, text := post(t, http.DefaultClient, url, body, -1); resp.StatusCode != 200 {
		t.Errorf("%d %s, want 200", resp.StatusCode, text)
	}
	if r := <-got; r.bytes != pieces*int64(len("piece")) || r.err != nil {
		t.Errorf("the upstream got %+v", r)
	}
}

// silence is longer than the time-out of the tests that are silent.
const (
	silence = 800 * time.Millisecond
	silent  = "stall_timeout: 500ms"
)

// A stream that is silent for longer than the time-out goes on, whichever the protocol.
func TestSilentStream(t *testing.T) {
	t.Parallel()
	url, client := serveHTTP2(t, bounded(silent), func(w http.ResponseWriter, _ *http.Request) {
		for range 3 {
			_, _ = io.WriteString(w, "x")
			w.(http.Flusher).Flush()
			<-time.After(silence)
		}
	})
	resp, text := post(t, client, url, strings.NewReader("body"), 4)
	if resp.ProtoMajor != 2 || text != "xxx" {
		t.Errorf("HTTP/%d: %q, want HTTP/2 and xxx", resp.ProtoMajor, text)
	}
}

// So does a connection that was upgraded.
func TestSilentUpgrade(t *testing.T) {
	t.Parallel()
	url := serve(t, bounded(silent), nil, echoUpgrade)
	c := upgrade(t, url)
	for range 2 {
		<-time.After(silence)
		if _, err := io.WriteString(c.conn, "word\n"); err != nil {
			t.Fatal(err)
		}
		if got, err := c.in.ReadString('\n'); err != nil || got != "word\n" {
			t.Errorf("echo %q, %v", got, err)
		}
	}
}

// And one that is kept for the next request.
func TestSilentConnection(t *testing.T) {
	t.Parallel()
	url := serve(t, bounded(silent), nil, hello)
	conn := raw(t, url, "")
	in := bufio.NewReader(conn)
	for range 3 {
		if _, err := fmt.Fprintf(conn, request+"ab", "POST", "acme-key", 2); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != 200 {
			t.Errorf("%d, %v", resp.StatusCode, err)
		}
		<-time.After(silence)
	}
}

// Over HTTP/2 a stall ends the request and not the connection.
func TestStallOverHTTP2(t *testing.T) {
	got := make(chan received, 10)
	text := strings.Replace(bounded("stall_timeout: 100ms"), "tenants: [acme]", "max_body: 10KiB", 1)
	url, client := serveHTTP2(t, text, collect(got))
	body, in := io.Pipe()
	defer func() { _ = in.Close() }()
	go func() { _, _ = io.WriteString(in, "abc") }()
	resp, answer := post(t, client, url, body, -1)
	wantProblem(t, resp, answer, 408)
	if r := <-got; r.err == nil {
		t.Error("the upstream took a part for the whole")
	}
	resp, answer = post(t, client, url+"/only", io.LimitReader(zeros{}, 1<<20), -1)
	wantProblem(t, resp, answer, 413)
	if resp, _ := post(t, client, url+"/only", strings.NewReader("abc"), 3); resp.StatusCode != 200 || resp.ProtoMajor != 2 {
		t.Errorf("the next request: %d over HTTP/%d", resp.StatusCode, resp.ProtoMajor)
	}
}

// serveHTTP2 is serve behind TLS, and a client that speaks HTTP/2 to it.
func serveHTTP2(t *testing.T, text string, upstream http.HandlerFunc) (string, *http.Client) {
	t.Helper()
	up := httptest.NewServer(upstream)
	t.Cleanup(up.Close)
	front := httptest.NewUnstartedServer(newGateway(t, parse(t, text, up.URL), gateway.Options{Store: memory(t)}))
	front.EnableHTTP2 = true
	front.StartTLS()
	t.Cleanup(front.Close)
	return front.URL, front.Client()
}

func memory(t testing.TB) headgate.Store {
	t.Helper()
	m, err := headgate.NewMemory(headgate.MemoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func newGateway(t testing.TB, c *config.Config, o gateway.Options) *gateway.Gateway {
	t.Helper()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	g, err := gateway.New(c, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

// A page of one of the route's origins can read the gateway's own answers, and is told once whose it is.
func TestCORS(t *testing.T) {
	const origin = "https://app.example.com"
	text := `
plans: {p: {limits: ["2/hour"]}}
tenants: [{name: acme, plan: p, api_key_sha256: "ACME"}]
routes:
  - {path: /, upstream: "UPSTREAM", cors_origins: ["` + origin + `"]}
  - {path: /any, upstream: "UPSTREAM", cors_origins: ["*"]}
  - {path: /none, upstream: "UPSTREAM"}
`
	url := serve(t, text, nil, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
		w.Header().Set("Access-Control-Allow-Credentials", "true")
		hello(w, r)
	})
	tests := []struct {
		path, origin, key string
		status            int
		allowed           string
	}{
		{"/", origin, "", 401, origin},
		{"/", "https://evil.example.com", "", 401, ""},
		{"/", "", "", 401, ""},
		{"/any", "https://evil.example.com", "", 401, "https://evil.example.com"},
		{"/none", origin, "", 401, ""},
		{"/", origin, "acme-key", 200, origin},
		{"/", "https://evil.example.com", "acme-key", 200, "https://evil.example.com"}, // the upstream's word
		{"/", origin, "acme-key", 429, origin},
		{"/none", origin, "acme-key", 429, ""},
	}
	for _, tt := range tests {
		edit := []func(*http.Request){key(tt.key)}
		if tt.origin != "" {
			edit = append(edit, header("Origin", tt.origin))
		}
		resp, _ := do(t, "GET", url+tt.path, edit...)
		got := resp.Header.Values("Access-Control-Allow-Origin")
		if resp.StatusCode != tt.status || strings.Join(got, "|") != tt.allowed {
			t.Errorf("%+v: %d, allowed %q", tt, resp.StatusCode, got)
		}
		exposed := strings.Contains(strings.Join(resp.Header.Values("Access-Control-Expose-Headers"), ","), "Retry-After")
		if own := tt.allowed != "" && !strings.Contains(tt.origin, "evil") || tt.path == "/any"; exposed != own {
			t.Errorf("%+v: exposed %v", tt, resp.Header.Values("Access-Control-Expose-Headers"))
		}
		if strings.Contains(strings.Join(resp.Header.Values("Vary"), ","), "Origin") != (tt.path != "/none") {
			t.Errorf("%+v: Vary %q", tt, resp.Header.Values("Vary"))
		}
	}
}
