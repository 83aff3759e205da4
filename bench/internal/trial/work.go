package trial

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/headgate/headgate/bench/internal/load"
	"github.com/headgate/headgate/bench/internal/report"
)

// The columns of a Work.
const (
	Throughput = "throughput"
	Median     = "median latency"
	P99        = "p99 latency"
)

// A Work is calls that contenders answer in turns.
type Work struct {
	Callers int
	Keys    []string // which each call takes one of, at random
	Sample  int      // one call in so many is timed; 1 = each
}

// Columns returns what is measured of a Work, throughput first.
func (w Work) Columns() []report.Column {
	return []report.Column{
		{Name: Throughput, Unit: report.PerSecond}, {Name: Median, Unit: report.Seconds, LessIsBetter: true}, {Name: P99, Unit: report.Seconds, LessIsBetter: true},
	}
}

// A Seat is a contender in its work.
type Seat struct {
	Decide  load.Decide
	Permits load.Permits // nil = grants are not held against a limit
	Entry   *report.Entry
}

// Run has each seat warm up, for half a turn that does not count, and then all take turns.
func (w Work) Run(ctx context.Context, s Settings, seats []Seat) error {
	names := make([]string, len(seats))
	for i := range seats {
		names[i] = seats[i].Entry.Name
		w.turn(seats[i], s.Turn/2).Run(ctx)
	}
	return s.Turns(ctx, names, func(i int) (string, error) {
		r := w.turn(seats[i], s.Turn).Run(ctx)
		seats[i].note(r)
		return fmt.Sprintf("%.0f/s", r.Rate()), nil
	})
}

func (w Work) turn(s Seat, d time.Duration) load.Turn {
	return load.Turn{Callers: w.Callers, Keys: w.Keys, For: d, Sample: w.Sample, Decide: s.Decide}
}

// note enters a turn.
func (s Seat) note(r *load.Result) {
	s.Entry.Add(Throughput, r.Rate())
	s.Entry.Add(Median, r.Latency.Quantile(0.5).Seconds())
	s.Entry.Add(P99, r.Latency.Quantile(0.99).Seconds())
	Faults(s.Entry, r, s.Permits)
}

// Faults enters the errors of a turn, and what was granted beyond what is permitted; nil permits = it is not looked at.
func Faults(e *report.Entry, r *load.Result, permits load.Permits) {
	e.Errors += r.Errors
	if r.Err != nil {
		e.Error = r.Err.Error()
	}
	if permits != nil {
		e.Checked = true
		e.Excess += r.Excess(permits)
	}
}

// Tenants returns so many keys.
func Tenants(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = "tenant:" + strconv.Itoa(i)
	}
	return keys
}
