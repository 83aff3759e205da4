package load_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/load"
)

// sampleReport is a run of which every part of the report has something to say.
func sampleReport(t *testing.T) *load.Report {
	t.Helper()
	limit := parse(t, "2/s sliding-log")
	r := &load.Report{
		Counts:      load.Counts{Sent: 900, Completed: 890, Allowed: 600, Denied: 285, Failed: 5, Dropped: 100, Unfinished: 10},
		Rates:       load.Rates{Due: 100, Sent: 90, Completed: 89},
		Elapsed:     load.Millis(10 * time.Second),
		Failures:    []load.Failure{{Kind: "timeout", Count: 3, Example: "deadline exceeded"}, {Kind: "status 503", Count: 2}},
		Interrupted: true,
		Audit: &load.Audit{
			Limit: limit, Keys: 3, Span: load.Millis(10 * time.Second), Allowed: 600, Permitted: 66, Over: 2,
			Whole:  load.Finding{Key: 1, Span: load.Millis(9 * time.Second), Allowed: 500, Permitted: 20},
			Window: load.Finding{Key: 2, From: load.Millis(1500 * time.Millisecond), Span: load.Millis(997900 * time.Microsecond), Allowed: 31, Permitted: 2},
		},
	}
	r.Latency.All = load.Percentiles{Count: 890, P50: 900, P90: 54_321, P99: 1_234_567, P999: 12_345_678, Max: load.Millis(12*time.Second + 3456789)}
	return r
}

func TestText(t *testing.T) {
	var b bytes.Buffer
	if err := sampleReport(t).WriteText(&b); err != nil {
		t.Fatal(err)
	}
	want := `interrupted after 10s

      due    sent  completed  allowed  denied  errors  dropped  unfinished
     1000     900        890      600     285       5      100          10
  100.0/s  90.0/s     89.0/s                                              
error: 3 x timeout, such as: deadline exceeded
error: 2 x status 503
dropped: 100 were due while --max-in-flight were under way; the latencies know nothing of them

latency, from when each request was due
         p50   p90     p99   p99.9  max
  all  900ns  54µs  1.23ms  12.3ms  12s

limit 2/s sliding-log, by this machine's clock (+ 1/1000 + 1ms for that of the limiter)
                        allowed  at most permitted       in
       3 keys in all        600                 66      10s
   busiest key (key 1)      500                 20       9s
  worst period (key 2)       31                  2  997.9ms

verdict: OVER THE LIMIT: key 2 was allowed 31 in 997.9ms, from 1.5s after the start; 2/s sliding-log permits at most 2 (2 of 3 keys were over)
`
	if got := b.String(); squeeze(got) != squeeze(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// squeeze makes one blank of several: columns move when a number is longer.
func squeeze(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	return strings.Join(lines, "\n")
}

func TestVerdicts(t *testing.T) {
	for _, tt := range []struct {
		spoil func(*load.Report)
		want  load.Result
		line  string
		good  bool
	}{
		{func(*load.Report) {}, load.Over, "OVER THE LIMIT: key 2", false},
		{func(r *load.Report) { r.Audit.Window.Allowed = 2 }, load.Over, "OVER THE LIMIT: key 1 was allowed 500 in 9s", false},
		{func(r *load.Report) { r.Audit.Over = 0 }, load.Failing, "5 of 890 requests failed; what was allowed is within the limit", false},
		{func(r *load.Report) { r.Audit = nil }, load.Failing, "5 of 890 requests failed\n", false},
		{func(r *load.Report) { r.Audit.Over, r.Failed = 0, 0 }, load.Within, "within the limit", true},
		{func(r *load.Report) { r.Audit, r.Failed = nil, 0 }, load.Unlimited, "no --limit", true},
		{func(r *load.Report) { r.Audit, r.Counts = nil, load.Counts{Sent: 1, Unfinished: 1} }, load.Nothing, "no request was completed", false},
	} {
		r := sampleReport(t)
		tt.spoil(r)
		var b bytes.Buffer
		if err := r.WriteText(&b); err != nil {
			t.Fatal(err)
		}
		if r.Result() != tt.want || r.Good() != tt.good || !strings.Contains(b.String(), "\nverdict: "+tt.line) {
			t.Errorf("%v, good %v, %s\nwant %v, %v and %q", r.Result(), r.Good(), b.String(), tt.want, tt.good, tt.line)
		}
	}
}

func TestJSON(t *testing.T) {
	b, err := json.Marshal(sampleReport(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"sent":900,"completed":890,"allowed":600,"denied":285,"failed":5,"dropped":100,"unfinished":10`, `"rates_per_second":{"due":100,`,
		`"elapsed_ms":10000.000`, `"p50_ms":0.001,`, `"p99_ms":1.235,"p99_9_ms":12.346,"max_ms":12003.457`, `"limit":"2/s sliding-log"`,
		`"window":{"key":2,"from_ms":1500.000,"span_ms":997.900,"allowed":31,"permitted":2}`, `{"kind":"status 503","count":2}`, `"interrupted":true`,
	} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%s\nlacks %s", b, want)
		}
	}
}

func TestProgressLine(t *testing.T) {
	p := load.Progress{Elapsed: 12*time.Second + 34567, Of: 30 * time.Second, InFlight: 7, Counts: load.Counts{Sent: 5, Allowed: 4, Denied: 1}}
	p.Total.Sent, p.Latency.P99 = 60, load.Millis(1_234_567)
	want := "12s of 30s warming up: sent 5, allowed 4, denied 1, errors 0, dropped 0, in flight 7, p99 1.23ms; 60 sent in all"
	if got := p.Line(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.Warm = true
	if got := p.Line(); strings.Contains(got, "warm") {
		t.Error(got)
	}
}
