package gateway_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/gateway"
	"github.com/headgate/headgate/redisstore"
	"github.com/headgate/headgate/redisstore/redistest"
)

const benchFile = `
plans: {p: {limits: ["1000000000/s"]}}
tenants: [{name: acme, plan: p, api_key_sha256: "ACME"}]
routes: [{path: /, upstream: "UPSTREAM"}]
`

const redisBenchFile = `
store: {redis: {url: "redis://127.0.0.1:1"}}
plans: {p: {limits: ["1000000000/s"]}}
tenants: [{name: acme, plan: p, api_key_sha256: "ACME"}]
routes: [{path: /, upstream: "UPSTREAM", on_store_error: closed}]
`

// BenchmarkGateway compares the gateway with a bare ReverseProxy over a transport of the same settings. An operation is one request through
// each. They take turns by a thousand requests, so that what else the machine does meets both. Callers and upstream speak just enough
// HTTP/1.1 that nearly all the work is that of the two.
//
// throughput and p99 are the gateway's divided by the proxy's; the other figures are for one request of each. The proxy makes a buffer for
// each response, as one does that is told nothing else; beside one that keeps its buffers, as the gateway does, memory/pooled shows what
// remains of the gateway's own work.
func BenchmarkGateway(b *testing.B) {
	b.Run("memory", func(b *testing.B) {
		up := newEcho(b)
		compare(b, newBareProxy(b, up), newGateway(b, parse(b, benchFile, up), gateway.Options{Store: memory(b)}))
	})
	b.Run("memory/pooled", func(b *testing.B) {
		up := newEcho(b)
		pooled := newBareProxy(b, up)
		pooled.BufferPool = new(kept)
		compare(b, pooled, newGateway(b, parse(b, benchFile, up), gateway.Options{Store: memory(b)}))
	})
	b.Run("redis", func(b *testing.B) {
		store, err := redisstore.New(redistest.Start(b).Client(), redisstore.Config{})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = store.Close() })
		guarded, err := headgate.NewGuard(store, headgate.GuardConfig{Timeout: time.Second})
		if err != nil {
			b.Fatal(err)
		}
		up := newEcho(b)
		compare(b, newBareProxy(b, up), newGateway(b, parse(b, redisBenchFile, up), gateway.Options{Store: guarded}))
	})
}

func compare(b *testing.B, proxy, gate http.Handler) {
	const turn = 1000
	bare, gated := newFleet(b, proxy), newFleet(b, gate)
	for _, f := range []*fleet{bare, gated} { // connections, pools and counters are made before anything is measured
		f.send(b, turn)
		f.forget()
	}
	b.ResetTimer()
	for done := 0; done < b.N; done += turn {
		bare.send(b, min(turn, b.N-done))
		gated.send(b, min(turn, b.N-done))
	}
	b.StopTimer()
	b.ReportMetric(0, "ns/op") // of both together it says nothing
	b.ReportMetric(bare.elapsed.Seconds()/gated.elapsed.Seconds(), "throughput")
	b.ReportMetric(gated.percentile(99).Seconds()/bare.percentile(99).Seconds(), "p99")
	for name, f := range map[string]*fleet{"gateway": gated, "proxy": bare} {
		b.ReportMetric(float64(f.elapsed.Nanoseconds())/float64(b.N), name+"-ns")
		b.ReportMetric(float64(f.mallocs)/float64(b.N), name+"-allocs")
		b.ReportMetric(float64(f.bytes)/float64(b.N), name+"-B")
	}
}

// newBareProxy returns what a gateway without limits would be.
func newBareProxy(b *testing.B, upstream string) *httputil.ReverseProxy {
	b.Helper()
	to, err := url.Parse(upstream)
	if err != nil {
		b.Fatal(err)
	}
	transport := &http.Transport{
		DialContext:       (&net.Dialer{Timeout: wait, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 256, IdleConnTimeout: 90 * time.Second, DisableCompression: true, ResponseHeaderTimeout: wait,
	}
	b.Cleanup(transport.CloseIdleConnections)
	return &httputil.ReverseProxy{Transport: transport, Rewrite: func(pr *httputil.ProxyRequest) { pr.SetURL(to); pr.SetXForwarded() }}
}

// kept keeps buffers.
type kept struct{ sync.Pool }

func (k *kept) Get() []byte {
	if b, ok := k.Pool.Get().(*[]byte); ok {
		return *b
	}
	return make([]byte, 32<<10)
}

func (k *kept) Put(b []byte) { k.Pool.Put(&b) }

// A fleet is callers that keep their connections to one handler.
type fleet struct {
	callers   []*bufio.ReadWriter
	latencies []time.Duration
	elapsed   time.Duration
	mallocs   uint64
	bytes     uint64
}

func newFleet(b *testing.B, h http.Handler) *fleet {
	b.Helper()
	server := httptest.NewServer(h)
	b.Cleanup(server.Close)
	f := new(fleet)
	for range 32 {
		c, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = c.Close() })
		f.callers = append(f.callers, bufio.NewReadWriter(bufio.NewReader(c), bufio.NewWriter(c)))
	}
	return f
}

func (f *fleet) forget() { *f = fleet{callers: f.callers} }

// send sends n requests, as many at a time as there are callers.
func (f *fleet) send(b *testing.B, n int) {
	var before, after runtime.MemStats
	var left atomic.Int64
	var group sync.WaitGroup
	latencies := make([]time.Duration, n)
	faults := make(chan error, len(f.callers))
	left.Store(int64(n))
	runtime.ReadMemStats(&before)
	start := time.Now()
	for _, c := range f.callers {
		group.Go(func() {
			for i := left.Add(-1); i >= 0; i = left.Add(-1) {
				sent := time.Now()
				if err := call(c); err != nil {
					faults <- err
					return
				}
				latencies[i] = time.Since(sent)
			}
		})
	}
	group.Wait()
	f.elapsed += time.Since(start)
	runtime.ReadMemStats(&after)
	f.mallocs, f.bytes = f.mallocs+after.Mallocs-before.Mallocs, f.bytes+after.TotalAlloc-before.TotalAlloc
	f.latencies = append(f.latencies, latencies...)
	select {
	case err := <-faults:
		b.Fatal(err)
	default:
	}
}

func (f *fleet) percentile(p int) time.Duration {
	slices.Sort(f.latencies)
	return f.latencies[(len(f.latencies)-1)*p/100]
}

// call sends one request and reads its response.
func call(c *bufio.ReadWriter) error {
	_, err := c.WriteString("GET /some/path?q=1 HTTP/1.1\r\nHost: api.example.com\r\nUser-Agent: bench\r\nAccept: */*\r\nX-Api-Key: acme-key\r\n\r\n")
	if err = errors.Join(err, c.Flush()); err != nil {
		return err
	}
	status, err := c.ReadSlice('\n')
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(status, []byte("HTTP/1.1 200 ")) {
		return fmt.Errorf("response begins with %q, want 200", status)
	}
	length, err := fields(c.Reader)
	if err == nil {
		_, err = c.Discard(length)
	}
	return err
}

// fields reads the fields of a message and returns the length of its content.
func fields(r *bufio.Reader) (length int, err error) {
	for {
		line, err := r.ReadSlice('\n')
		if err != nil || len(line) <= len("\r\n") {
			return length, err
		}
		if value, found := bytes.CutPrefix(line, []byte("Content-Length: ")); found {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return 0, err
			}
		}
	}
}

// newEcho runs an upstream that gives every request the same response, and returns its URL.
func newEcho(b *testing.B) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	var group sync.WaitGroup
	b.Cleanup(func() { _ = l.Close(); group.Wait() })
	group.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			group.Go(func() { defer func() { _ = c.Close() }(); answer(c) })
		}
	})
	return "http://" + l.Addr().String()
}

// answer answers requests without a body until their sender goes away.
func answer(c net.Conn) {
	r := bufio.NewReader(c)
	for {
		if _, err := fields(r); err != nil {
			return
		}
		if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{\"ok\": true}\n"); err != nil {
			return
		}
	}
}
