package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/bench/internal/report"
	"github.com/headgate/headgate/bench/internal/worker"
)

// TestMain lets the test's own binary be a worker, as the program is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == worker.Word {
		os.Exit(run(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// Every row is measured, small, and nothing is granted beyond its limit by Headgate. How fast it is does not matter here.
func TestQuick(t *testing.T) {
	dir := t.TempDir()
	o, err := parse([]string{"-quick", "-time", "20ms", "-out", dir, "-json", filepath.Join(dir, "all.json")}, new(bytes.Buffer))
	if err != nil {
		t.Fatal(err)
	}
	o.settings.Callers, o.settings.ManyCallers = 8, 16
	var out, errs bytes.Buffer
	if err := o.run(t.Context(), &out, &errs); err != nil {
		t.Fatalf("%v\n%s", err, &errs)
	}
	var r report.Report
	text, err := os.ReadFile(filepath.Join(dir, "all.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != len(rows()) {
		t.Errorf("%d rows, want %d", len(r.Rows), len(rows()))
	}
	for _, row := range r.Rows {
		inspect(t, &row)
	}
	markdown, err := os.ReadFile(filepath.Join(dir, textFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"](#redis-hot)", "](" + chartFile + ")", "github.com/ulule/limiter/v3 | v3", "within the limit", "its figures say nothing"} {
		if !strings.Contains(string(markdown), want) {
			t.Errorf("%s lacks %q\n%s", textFile, want, markdown)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, chartFile)); err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.String(), "](#gateway)") || !strings.Contains(errs.String(), "round 1 of 1: ") {
		t.Errorf("standard output\n%s\nand progress\n%s", &out, &errs)
	}
}

// inspect checks that a row is whole.
func inspect(t *testing.T, row *report.Row) {
	external := strings.HasPrefix(row.ID, "rls-") // Headgate's is measured where it runs
	for _, e := range row.Entries {
		for _, c := range row.Columns {
			if n := len(e.Figures[c.Name]); n != 1 && !external && !(e.Missing != "") {
				t.Errorf("%s: %s has %d figures of %s, want 1", row.ID, e.Name, n, c.Name)
			}
		}
		if e.Kind == report.Headgate && (e.Errors > 0 || e.Excess > 0) {
			t.Errorf("%s: %s has %d errors (%s) and granted %d above the limit", row.ID, e.Name, e.Errors, e.Error, e.Excess)
		}
		checked := strings.HasPrefix(row.ID, "redis-") && row.ID != "redis-memory" && row.ID != "redis-cpu" || row.ID == "cluster" || row.ID == "leases"
		if checked && e.Kind != report.Wall && !e.Checked {
			t.Errorf("%s: the grants of %s were not held against the limit", row.ID, e.Name)
		}
	}
	for _, g := range row.Goals {
		if v := row.Result(g).Verdict; v == report.NotMeasured && !external {
			t.Errorf("%s: the goal %+v was not measured", row.ID, g)
		}
	}
}

// A run that is interrupted leaves nothing.
func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	o, err := parse([]string{"-rows", "redis-hot", "-time", "1h", "-out", dir}, new(bytes.Buffer))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := o.run(ctx, new(bytes.Buffer), new(bytes.Buffer)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want that of the context", err)
	}
	if files, err := os.ReadDir(dir); len(files) > 0 || err != nil {
		t.Errorf("left %v, %v", files, err)
	}
}

// A row that cannot be measured is an error, and the report says why.
func TestFailure(t *testing.T) {
	t.Setenv("REDISTEST_SERVER", "no-such-program")
	dir := t.TempDir()
	o, err := parse([]string{"-quick", "-rows", "redis-hot", "-out", dir}, new(bytes.Buffer))
	if err != nil {
		t.Fatal(err)
	}
	if err := o.run(t.Context(), new(bytes.Buffer), new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "row redis-hot: redistest: no-such-program") {
		t.Errorf("error %v", err)
	}
	text, err := os.ReadFile(filepath.Join(dir, textFile))
	if err != nil || !strings.Contains(string(text), "**Failed**: redistest: no-such-program not found") {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		args    string
		rows    string // ids; "" = all
		rounds  int
		turn    time.Duration
		command string
	}{
		{"", "", 5, time.Second, "go run ./bench"},
		{"-out elsewhere", "", 5, time.Second, "make bench"},
		{"-quick", "", 1, 50 * time.Millisecond, "go run ./bench -quick"},
		{"-rows gateway,redis-hot -rounds 9 -time 3s -json /a/b -headgate /c/d", "redis-hot gateway", 9, 3 * time.Second, "go run ./bench -rounds 9 -rows gateway,redis-hot -time 3s"},
		{"-quick -rounds 2 -rls a=127.0.0.1:1 -rls b=[::1]:2", "", 2, 50 * time.Millisecond, "go run ./bench -quick -rls a=HOST:PORT -rls b=HOST:PORT -rounds 2"},
	} {
		o, err := parse(strings.Fields(tt.args), new(bytes.Buffer))
		if err != nil {
			t.Errorf("%s: %v", tt.args, err)
			continue
		}
		var ids []string
		for _, r := range o.rows {
			ids = append(ids, r.ID)
		}
		if got := strings.Join(ids, " "); got != tt.rows && (tt.rows != "" || len(ids) != len(rows())) {
			t.Errorf("%s: rows %s, want %s", tt.args, got, tt.rows)
		}
		if o.settings.Rounds != tt.rounds || o.settings.Turn != tt.turn || o.command != tt.command {
			t.Errorf("%s: %d rounds of %v, %q; want %d of %v, %q", tt.args, o.settings.Rounds, o.settings.Turn, o.command, tt.rounds, tt.turn, tt.command)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"-rows nothing":      `no row "nothing"`,
		"-rows redis-hot,":   `no row ""`,
		"-rounds 0":          "-rounds 0, want 1 or more",
		"-time 0s":           "-time 0s, want 1ms or more",
		"-rls 127.0.0.1:1":   "want name=host:port",
		"-rls a=127.0.0.1":   "want name=host:port",
		"-rls =127.0.0.1:80": "want name=host:port",
		"-nothing":           "-nothing",
		"redis-hot":          `"redis-hot" is no flag`,
	} {
		if _, err := parse(strings.Fields(args), new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one that says %s", args, err, want)
		}
	}
}

func TestHelp(t *testing.T) {
	for _, tt := range []struct {
		args string
		says []string
	}{
		{"--help", []string{"Examples:", "make bench", "-rounds", "-json"}},
		{"-list", []string{"redis-hot", "gateway"}},
	} {
		var text bytes.Buffer
		if _, err := parse(strings.Fields(tt.args), &text); !errors.Is(err, errHelped) {
			t.Errorf("%s: error %v", tt.args, err)
		}
		for _, want := range tt.says {
			if !strings.Contains(text.String(), want) {
				t.Errorf("%s does not say %q\n%s", tt.args, want, &text)
			}
		}
	}
}

func TestIDs(t *testing.T) {
	var ids []string
	for _, r := range rows() {
		if slices.Contains(ids, r.ID) || r.ID == "" || r.Title == "" {
			t.Errorf("row %q, %q", r.ID, r.Title)
		}
		ids = append(ids, r.ID)
	}
}
