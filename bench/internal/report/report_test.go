package report_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/headgate/headgate/bench/internal/report"
)

var update = flag.Bool("update", false, "write the golden files anew")

// sample has every kind of entry and of verdict.
func sample() *report.Report {
	figures := func(rate, p99 []float64) map[string][]float64 {
		return map[string][]float64{"throughput": rate, "p99": p99}
	}
	return &report.Report{
		Environment: report.Environment{
			Date: "2026-01-02", Command: "make bench", CPU: "A CPU", Cores: 2, Memory: "24 GiB", Kernel: "6.1", Go: "go1.26.0", Redis: "7.0.15",
			Headgate: "0123456789ab", Modules: []report.Module{{Path: "example.com/peer", Version: "v1.2.3"}}, Rounds: 3, Turn: "1s", Took: "12m",
		},
		Rows: []report.Row{
			{
				ID: "hot", Title: "One hot key", About: "256 callers take from one key.",
				Columns: []report.Column{{Name: "throughput", Unit: report.PerSecond}, {Name: "p99", Unit: report.Seconds, LessIsBetter: true}},
				Entries: []report.Entry{
					{Name: "slow", Kind: report.Peer, Figures: figures([]float64{30_000, 31_000, 29_000}, []float64{0.02, 0.02, 0.02}), Errors: 1200, Error: "gave up | after <3>"},
					{Name: "quick", Kind: report.Peer, Figures: figures([]float64{70_000, 35_000, 72_000}, []float64{0.008, 0.016, 0.008}), Excess: 7, Checked: true},
					{Name: "Headgate", Kind: report.Headgate, Figures: figures([]float64{910_000, 490_000, 900_000}, []float64{0.001, 0.002, 0.002}), Checked: true},
					{Name: "bare", Kind: report.Wall, Figures: figures([]float64{1_234_567, 700_000, 1_300_000}, nil)},
				},
				Goals: []report.Goal{
					{Column: "throughput", To: report.BestPeer, Target: 12},
					{Column: "throughput", To: "slow", Target: 40},
					{Column: "p99", To: report.BestPeer, Target: 0.125, Most: true},
					{Column: "p99", To: "bare", Target: 1, Most: true},
				},
				Notes: []string{"A note."},
			},
			{
				ID: "size", Title: "Bytes a key", About: "What a key takes.",
				Columns: []report.Column{{Name: "bytes a key", Unit: report.Bytes, LessIsBetter: true}},
				Entries: []report.Entry{
					{Name: "Headgate", Kind: report.Headgate, Figures: map[string][]float64{"bytes a key": {94.5}}},
					{Name: "other", Kind: report.Peer, Missing: "there was no room"},
				},
				Goals: []report.Goal{{Column: "bytes a key", Target: 95, Most: true}, {Column: "bytes a key", To: report.BestPeer, Target: 1, Most: true}},
			},
			{
				ID: "broken", Title: "What is not right", About: "Speed does not make up for it.",
				Columns: []report.Column{{Name: "throughput", Unit: report.PerSecond}},
				Entries: []report.Entry{
					{Name: "Headgate", Kind: report.Headgate, Figures: map[string][]float64{"throughput": {100}}, Excess: 1, Checked: true},
					{Name: "Headgate, failing", Kind: report.Headgate, Figures: map[string][]float64{"throughput": {100}}, Errors: 1, Error: "no"},
				},
				Goals: []report.Goal{{Column: "throughput", Target: 50}, {Column: "throughput", Of: "Headgate, failing", Target: 50}},
			},
			{ID: "failed", Title: "What failed", About: "It could not be measured.", Failure: "no server"},
		},
	}
}

func TestGolden(t *testing.T) {
	for name, write := range map[string]func(*report.Report, io.Writer) error{
		"benchmarks.md":   func(r *report.Report, w io.Writer) error { return r.WriteMarkdown(w, "benchmarks.svg") },
		"benchmarks.svg":  (*report.Report).WriteChart,
		"benchmarks.json": (*report.Report).WriteJSON,
		"goals.md":        (*report.Report).WriteGoals,
	} {
		var got bytes.Buffer
		if err := write(sample(), &got); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%s differs; go test -update writes it anew\n%s", file, got.Bytes())
		}
	}
}

func TestResult(t *testing.T) {
	row := sample().Rows[0]
	for i, want := range []struct {
		to       string
		measured float64
		verdict  report.Verdict
	}{
		{"quick", 13, report.Met}, // 13, 14 and 12.5: the medians alone would say 12.86
		{"slow", 910.0 / 30, report.Short},
		{"quick", 0.125, report.Met},
		{"bare", 0, report.NotMeasured},
	} {
		res := row.Result(row.Goals[i])
		if res.To == nil || res.To.Name != want.to || res.Measured != want.measured || res.Verdict != want.verdict {
			t.Errorf("goal %d: %+v beside %+v, want %+v", i, res, res.To, want)
		}
	}
}

func TestResultOfNothing(t *testing.T) {
	var row report.Row
	for _, to := range []string{"", "somebody", report.BestPeer} {
		if res := row.Result(report.Goal{Column: "throughput", To: to, Target: 1}); res.Verdict != report.NotMeasured {
			t.Errorf("beside %q: %s, want %s", to, res.Verdict, report.NotMeasured)
		}
	}
}

func TestChartIsXML(t *testing.T) {
	var chart bytes.Buffer
	if err := sample().WriteChart(&chart); err != nil {
		t.Fatal(err)
	}
	bars := 0
	for d := xml.NewDecoder(&chart); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "rect" {
			bars++
		}
	}
	if want := 3 + 4 + 1 + 2; bars != want { // the legend's, and those that were measured
		t.Errorf("%d rectangles, want %d", bars, want)
	}
}

func TestJSONKeepsAll(t *testing.T) {
	var text bytes.Buffer
	if err := sample().WriteJSON(&text); err != nil {
		t.Fatal(err)
	}
	var back report.Report
	if err := json.Unmarshal(text.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if row := back.Rows[0]; len(back.Rows) != 4 || len(row.Entries[2].Figures["throughput"]) != 3 || row.Result(row.Goals[0]).Verdict != report.Met {
		t.Errorf("came back as %+v", back)
	}
}

// A disk that is full is said so.
func TestWriteErrors(t *testing.T) {
	for _, write := range []func(io.Writer) error{
		func(w io.Writer) error { return sample().WriteMarkdown(w, "") }, sample().WriteChart, sample().WriteJSON, sample().WriteGoals,
	} {
		if err := write(full{}); !errors.Is(err, errFull) {
			t.Errorf("error %v, want %v", err, errFull)
		}
	}
}

var errFull = errors.New("disk is full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }
