package main_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/gatetest"
	"github.com/headgate/headgate/redisstore/redistest"
)

// benchReport is what the tests read of bench --json.
type benchReport struct {
	Verdict                                                       string
	Good, Interrupted                                             bool
	Sent, Completed, Allowed, Denied, Failed, Dropped, Unfinished int64
	Failures                                                      []struct{ Kind string }
	Latency                                                       struct{ All, Allowed, Denied struct{ Count int64 } }
	Audit                                                         struct {
		Whole, Window struct{ Allowed, Permitted int64 }
	}
}

func bench(t *testing.T, args ...string) (code int, r benchReport) {
	t.Helper()
	code, stdout, stderr := run(t, append([]string{"bench", "--json", "--timeout", "25s"}, args...)...)
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("bench %q: %d %q %v; stderr %s", args, code, stdout, err, stderr)
	}
	if r.Good != (code == 0) || r.Completed != r.Allowed+r.Denied+r.Failed || r.Sent != r.Completed+r.Unfinished || r.Latency.All.Count != r.Completed ||
		r.Latency.Allowed.Count != r.Allowed || r.Latency.Denied.Count != r.Denied {
		t.Errorf("bench %q: exit code %d, and %+v does not add up", args, code, r)
	}
	return code, r
}

func TestBenchMemory(t *testing.T) {
	code, r := bench(t, "--memory", "--limit", "10/hour", "--keys", "10", "--rate", "1000/s", "--duration", "1s", "--poisson", "--warmup", "100ms")
	if code != 0 || r.Verdict != "within" || r.Sent+r.Dropped < 700 || r.Sent+r.Dropped > 1300 || r.Allowed > 100 || r.Denied == 0 {
		t.Errorf("%d %+v, want about 1000 requests, at most 100 allowed", code, r)
	}
	code, stdout, stderr := run(t, "bench", "--memory", "--limit", "1/hour sliding-log", "--keys", "1", "--rate", "100/s", "--duration", "1100ms")
	if code != 0 || !strings.HasSuffix(stdout, "\nverdict: within the limit\n") || !strings.Contains(stdout, "limit 1/hour sliding-log") ||
		!strings.HasPrefix(stderr, "1s of 1.1s: sent ") || strings.Contains(stderr, "\r") {
		t.Errorf("%d\n%s\n%q, want a report, and a plain line of progress", code, stdout, stderr)
	}
}

// What is in Redis before is there afterwards, and nothing else.
func TestBenchRedis(t *testing.T) {
	server := redistest.Start(t)
	server.Do("SET", "headgate-bench-mine", "1")
	server.Do("SET", "headgate-bench:other-run", "1")
	run(t, "take", "--redis", server.URL(), "--timeout", "10s", "--key", "k", "--limit", "1/hour")
	before := server.Do("DBSIZE")
	for _, limit := range []string{"5/s", "20/s burst 3", "5/minute fixed-window", "5/s aligned-window", "5/s sliding-window", "5/s sliding-log"} {
		code, r := bench(t, "--redis", server.URL(), "--limit", limit, "--keys", "20", "--hot", "--rate", "500/s", "--duration", "1s")
		if code != 0 || r.Verdict != "within" || r.Allowed == 0 || r.Denied == 0 {
			t.Errorf("%s: %d %+v, want some allowed, some denied, and the limit held", limit, code, r)
		}
		if after := server.Do("DBSIZE"); after != before {
			t.Errorf("%s: %v keys, before %v", limit, after, before)
		}
	}
	if server.Do("GET", "headgate-bench:other-run") != "1" {
		t.Error("the key of another run is gone")
	}
}

func TestBenchGateway(t *testing.T) {
	p := serve(t)
	code, r := bench(t, "--url", p.url, "--header", "X-API-Key: demo-free", "--limit", "5/s burst 10", "--rate", "200/s", "--duration", "2s")
	if code != 0 || r.Verdict != "within" || r.Allowed < 10 || r.Denied == 0 || r.Audit.Window.Permitted < 14 || r.Audit.Window.Permitted > 15 {
		t.Errorf("%d %+v, want the burst allowed, some denied, and the limit held", code, r)
	}
	code, r = bench(t, "--url", p.url, "--header", "X-API-Key: {key}", "--rate", "20/s", "--duration", "500ms")
	if code != 1 || r.Verdict != "failed" || r.Failed != r.Completed || len(r.Failures) != 1 || r.Failures[0].Kind != "status 401" {
		t.Errorf("%d %+v, want 401 for all", code, r)
	}
}

// A server that lets through more than it should is told on.
func TestBenchLiar(t *testing.T) {
	for permitted, want := range map[int64]string{100: "within", 310: "over"} {
		var asked atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if asked.Add(1) > permitted {
				w.WriteHeader(http.StatusTooManyRequests)
			}
		}))
		code, r := bench(t, "--url", server.URL, "--limit", "100/hour", "--rate", "500/s", "--duration", "1s", "--max-in-flight", "5000")
		if (code != 0) != (want == "over") || r.Verdict != want || r.Allowed != permitted || r.Audit.Whole.Allowed != permitted || r.Audit.Whole.Permitted != 100 {
			t.Errorf("%d of 100: %d %+v, want %s", permitted, code, r, want)
		}
		server.Close()
	}
}

// Errors are told from denials, and make the exit code.
func TestBenchErrors(t *testing.T) {
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader([]int{http.StatusOK, http.StatusTooManyRequests, http.StatusServiceUnavailable}[n.Add(1)%3])
	}))
	defer server.Close()
	code, r := bench(t, "--url", server.URL, "--rate", "300/s", "--duration", "1s")
	if code != 1 || r.Verdict != "failed" || r.Allowed != 100 || r.Denied != 100 || r.Failed != 100 || r.Failures[0].Kind != "status 503" {
		t.Errorf("%d %+v, want 100 of each", code, r)
	}
}

// A target that is not there is told in one line, which says what to do.
func TestBenchNobodyThere(t *testing.T) {
	addr := gatetest.FreeAddr(t)
	for _, args := range [][]string{{"--url", "http://" + addr}, {"--redis", "redis://" + addr, "--limit", "1/s"}} {
		code, stdout, stderr := run(t, append([]string{"bench"}, args...)...)
		if code != 1 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, addr) || !strings.Contains(stderr, "or correct --") {
			t.Errorf("%q: %d %q %q, want 1 and the remedy", args, code, stdout, stderr)
		}
	}
}

// Ctrl-C ends the run, not the report, and no key stays behind.
func TestBenchInterrupted(t *testing.T) {
	server := redistest.Start(t)
	cmd := exec.Command(os.Getenv(binaryVar), "bench", "--json", "--redis", server.URL(), "--limit", "5/s", "--duration", "1h", "--rate", "100/s")
	var stdout strings.Builder
	cmd.Stdout = &stdout
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	guard := time.AfterFunc(gatetest.Patience, func() { _ = cmd.Process.Kill() })
	defer guard.Stop()
	lines := bufio.NewReader(stderr)
	if line, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(line, "1s of 1h0m0s: sent ") {
		t.Errorf("%q %v, want progress", line, err)
	}
	if n := server.Do("DBSIZE"); n == int64(0) {
		t.Error("no key while it runs")
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(lines)
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v, want exit code 0; stderr %s", err, rest)
	}
	var r benchReport
	if err := json.Unmarshal([]byte(stdout.String()), &r); err != nil || !r.Interrupted || r.Completed == 0 || r.Verdict != "within" {
		t.Errorf("%s (%v), want a report of what was measured", stdout.String(), err)
	}
	if n := server.Do("DBSIZE"); n != int64(0) {
		t.Errorf("%v keys are left", n)
	}
}

func TestBenchWrongUsage(t *testing.T) {
	memory := func(more ...string) []string { return append([]string{"--memory", "--limit", "1/s"}, more...) }
	url := func(more ...string) []string { return append([]string{"--url", "http://127.0.0.1:1/"}, more...) }
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "one of --redis, --url and --memory"},
		{memory("--url", "http://127.0.0.1:1/"), "one of --redis, --url and --memory"},
		{[]string{"--memory"}, "--limit is missing"},
		{[]string{"--redis", "redis://127.0.0.1:1"}, "--limit is missing"},
		{[]string{"--redis", "redis://:secret@127.0.0.1?x", "--limit", "1/s"}, "--redis: "},
		{[]string{"--redis", "redis://redis.example.com", "--limit", "1/s"}, "redis.example.com:6379 is not this machine"},
		{[]string{"--redis", "redis+sentinel://127.0.0.1,10.0.0.1/m", "--limit", "1/s"}, "10.0.0.1:26379 is not this machine"},
		{[]string{"--url", "https://api.example.com/secret"}, "add --yes"},
		{[]string{"--url", "api.example.com"}, "http://HOST"},
		{url("--header", "secret"), "Name: value"},
		{url("--method", "G T"), "method"},
		{url("--keys", "2"), "write {key}"},
		{url("--hot"), "write {key}"},
		{url("--limit", "1/fortnight"), "--limit"},
		{memory("--header", "A: secret"), "--header has no use"},
		{memory("--rate", "5000"), "--rate"},
		{memory("--rate", "0/s"), "--rate"},
		{memory("--rate", "5/s burst 2"), "--rate"},
		{memory("--rate", "100000/s", "--duration", "1h"), "lower --rate"},
		{memory("--duration", "0s"), "--duration"},
		{memory("--warmup", "-1s"), "--warmup"},
		{memory("--max-in-flight", "0"), "--max-in-flight"},
		{memory("--timeout", "2h"), "--timeout"},
		{memory("--keys", "2000000"), "--keys"},
		{memory("--bogus"), "--bogus"},
	} {
		code, stdout, stderr := run(t, append([]string{"bench"}, tt.args...)...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, tt.want) || strings.Contains(stderr, "secret") || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%q: %d %q %q, want 2 and %q", tt.args, code, stdout, stderr, tt.want)
		}
	}
}
