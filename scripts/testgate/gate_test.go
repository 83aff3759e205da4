package main

import (
	"strings"
	"testing"
)

// passing is a package p with one test that passed.
const passing = `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"chatter\n"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0}
{"Action":"output","Package":"p","Output":"PASS\n"}
{"Action":"output","Package":"p","Output":"ok  \tp\t1.2s\n"}
{"Action":"pass","Package":"p","Elapsed":1.2}
`

func TestCheck(t *testing.T) {
	tests := []struct {
		name, in string
		passed   int
		wantErr  string // "" = none
		show     string
		hide     string
	}{
		{name: "passed", in: passing, passed: 1, show: "ok  \tp\t1.2s\n", hide: "chatter"},
		{
			name: "skipped", wantErr: "skipped: q TestB/sub:", passed: 1,
			in: passing + `{"Action":"skip","Package":"q","Test":"TestB/sub"}
{"Action":"pass","Package":"q"}
`,
		},
		{
			name: "failed", wantErr: "failed: q TestB\nfailed: q", passed: 1, show: "why\n",
			in: passing + `{"Action":"output","Package":"q","Test":"TestB","Output":"why\n"}
{"Action":"fail","Package":"q","Test":"TestB"}
{"Action":"output","Package":"q","Output":"FAIL\tq\t0.1s\n"}
{"Action":"fail","Package":"q"}
`,
		},
		{
			name: "died in a test", wantErr: "failed: q", show: "panic: boom\n",
			in: `{"Action":"output","Package":"q","Test":"TestB","Output":"panic: boom\n"}
{"Action":"fail","Package":"q"}
`,
		},
		{
			name: "not built", wantErr: "failed: q", show: "x.go:1: undefined: y\n",
			in: `{"ImportPath":"q","Action":"build-output","Output":"x.go:1: undefined: y\n"}
{"ImportPath":"q","Action":"build-fail"}
{"Action":"output","Package":"q","Output":"FAIL\tq [build failed]\n"}
{"Action":"fail","Package":"q","Elapsed":0,"FailedBuild":"q"}
`,
		},
		{
			name: "cut short", wantErr: "q did not come to an end", passed: 1, show: "half a line",
			in: passing + `{"Action":"output","Package":"q","Test":"TestB","Output":"half a line"}`,
		},
		{
			name: "package without tests", passed: 1, hide: "no test files",
			in: passing + `{"Action":"output","Package":"q","Output":"?   \tq\t[no test files]\n"}
{"Action":"skip","Package":"q"}
`,
		},
		{name: "nothing", wantErr: "no test ran"},
		{name: "only empty packages", wantErr: "no test ran", in: `{"Action":"skip","Package":"q"}` + "\n"},
		{name: "not an event", in: passing + "go: warning\n", passed: 1, show: "go: warning\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			passed, err := check(strings.NewReader(tt.in), &out)
			if passed != tt.passed {
				t.Errorf("%d passed, want %d", passed, tt.passed)
			}
			if (err == nil) != (tt.wantErr == "") || err != nil && !strings.Contains(err.Error(), tt.wantErr) {
				t.Errorf("error %q, want %q", err, tt.wantErr)
			}
			if !strings.Contains(out.String(), tt.show) {
				t.Errorf("output %q, want %q in it", out.String(), tt.show)
			}
			if tt.hide != "" && strings.Contains(out.String(), tt.hide) {
				t.Errorf("output %q, want no %q in it", out.String(), tt.hide)
			}
		})
	}
}
