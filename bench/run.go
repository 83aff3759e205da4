package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate/bench/internal/hold"
	"github.com/headgate/headgate/bench/internal/machine"
	"github.com/headgate/headgate/bench/internal/report"
)

// The names of what is written.
const (
	textFile  = "benchmarks.md"
	chartFile = "benchmarks.svg"
)

// measured are the modules whose versions the report names.
var measured = []string{
	"github.com/redis/go-redis/v9", "github.com/ulule/limiter/v3", "github.com/go-redis/redis_rate/v10", "github.com/throttled/throttled/v2",
	"github.com/sethvargo/go-limiter", "github.com/go-chi/httprate", "golang.org/x/time", "google.golang.org/grpc",
}

// run measures, and writes what was found. It writes no report when ctx ends. A row that fails is in the report, and an error.
func (o options) run(ctx context.Context, out, errs io.Writer) error {
	redis.SetLogger(silence{})
	begun := time.Now()
	r := report.Report{Environment: machine.Environment(measured...)}
	r.Environment.Date, r.Environment.Command = begun.UTC().Format(time.DateOnly), o.command
	r.Environment.Rounds, r.Environment.Turn, r.Environment.Quick = o.settings.Rounds, o.settings.Turn.String(), o.quick
	var failures []error
	for i, row := range o.rows {
		say := func(text string) { _, _ = fmt.Fprintf(errs, "[%d/%d] %-16s %s\n", i+1, len(o.rows), row.ID, text) }
		say(row.Title)
		o.settings.Progress = say
		var found report.Row
		err := hold.Run(func(tb testing.TB) (err error) {
			found, err = row.Measure(ctx, tb, o.settings)
			return err
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		found.ID, found.Title = row.ID, row.Title
		if err != nil {
			say("failed: " + err.Error())
			found.Failure = err.Error()
			failures = append(failures, fmt.Errorf("row %s: %w", row.ID, err))
		}
		r.Rows = append(r.Rows, found)
	}
	r.Environment.Took = time.Since(begun).Round(time.Second).String()
	return errors.Join(append(failures, o.write(&r, out))...)
}

// write writes the report to where it was asked for, and the table of targets to out.
func (o options) write(r *report.Report, out io.Writer) error {
	if err := r.WriteGoals(out); err != nil {
		return err
	}
	if o.json != "" {
		if err := toFile(o.json, r.WriteJSON); err != nil {
			return err
		}
	}
	if o.out == "" {
		return nil
	}
	if err := toFile(filepath.Join(o.out, chartFile), r.WriteChart); err != nil {
		return err
	}
	return toFile(filepath.Join(o.out, textFile), func(w io.Writer) error { return r.WriteMarkdown(w, chartFile) })
}

// toFile writes a file whole or not at all.
func toFile(name string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".bench-")
	if err != nil {
		return err
	}
	err = errors.Join(write(f), f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

// silence keeps the client's own words off the terminal: what goes wrong is in the figures.
type silence struct{}

// Printf implements the client's logger.
func (silence) Printf(context.Context, string, ...any) {}
