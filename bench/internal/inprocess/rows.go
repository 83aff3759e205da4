package inprocess

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate/bench/internal/machine"
	"github.com/headgate/headgate/bench/internal/report"
	"github.com/headgate/headgate/bench/internal/trial"
	"github.com/headgate/headgate/bench/internal/worker"
)

// The names of the workers' jobs.
const (
	SpeedJob = "inprocess-speed"
	SizeJob  = "inprocess-size"
)

// The columns.
const (
	decision    = "decision"
	allocations = "allocations"
	perKey      = "memory a key"
	heap        = "heap a key"
	collection  = "forced GC"
	longestFull = "longest when full, CPU"
	clockFull   = "longest when full"
	clockFill   = "longest while filling"
)

// Rows returns the rows about the memory store.
func Rows() []trial.Row {
	return []trial.Row{
		{ID: "memory-hot", Title: "One key in memory, all cores", Measure: func(ctx context.Context, _ testing.TB, s trial.Settings) (report.Row, error) {
			return measureSpeed(ctx, s, report.Row{
				About: "One key of 100 a second, asked for by every core at once, so nearly all are denied. " + ownProcess,
				Goals: []report.Goal{{Column: decision, To: report.BestPeer, Target: 0.5, Most: true}, {Column: allocations, Target: 0, Most: true}},
			}, quota{100, time.Second}, 1)
		}},
		{ID: "memory-granted", Title: "One key in memory, all granted", Measure: func(ctx context.Context, _ testing.TB, s trial.Settings) (report.Row, error) {
			return measureSpeed(ctx, s, report.Row{
				About: "The same with a limit of 1,000,000,000 a second, so that every call takes a token. " + ownProcess,
			}, quota{1_000_000_000, time.Second}, 1)
		}},
		{ID: "memory-keys", Title: "Many keys in memory", Measure: func(ctx context.Context, _ testing.TB, s trial.Settings) (report.Row, error) {
			return measureSpeed(ctx, s, report.Row{
				About: fmt.Sprintf("%d keys of 100 a second that are known already, asked for at random by every core. %s", s.MemoryKeys, ownProcess),
				Goals: []report.Goal{{Column: decision, To: report.BestPeer, Target: 0.45, Most: true}, {Column: allocations, Target: 0, Most: true}},
			}, quota{100, time.Second}, s.MemoryKeys)
		}},
		{ID: "memory-size", Title: "Very many keys in memory", Measure: measureSize},
	}
}

const ownProcess = "The time is that of the clock, divided by the calls of all cores together. Each contender is in each round a process of its own, so that nobody pays for another one's garbage."

func measureSpeed(ctx context.Context, s trial.Settings, row report.Row, q quota, keys int) (report.Row, error) {
	row.Columns = []report.Column{{Name: decision, Unit: report.Seconds, LessIsBetter: true}, {Name: allocations, Unit: report.Count, LessIsBetter: true}}
	for _, l := range limiters {
		if l.name != nothingName {
			row.Entries = append(row.Entries, report.Entry{Name: l.name, Kind: l.kind, Checked: keys == 1})
		}
	}
	names := make([]string, len(row.Entries))
	for i := range row.Entries {
		names[i] = row.Entries[i].Name
	}
	err := s.Turns(ctx, names, func(i int) (string, error) {
		e := &row.Entries[i]
		var r speed
		if err := worker.Run(ctx, SpeedJob, speedSpec{Limiter: e.Name, Quota: q, Keys: keys, For: s.Turn / 2}, &r); err != nil {
			return "", err
		}
		seconds, allocated := r.perCall()
		e.Add(decision, seconds)
		e.Add(allocations, allocated)
		e.Excess += r.Excess
		return fmt.Sprintf("%.0f ns", seconds*1e9), nil
	})
	return row, err
}

// measureSize measures each contender once: it takes long, and memory is not a matter of chance.
func measureSize(ctx context.Context, _ testing.TB, s trial.Settings) (report.Row, error) {
	row := report.Row{
		About: fmt.Sprintf("A limiter is filled with %d keys of 100 an hour by one goroutine. Then it is asked for known keys at random, and last for new ones, which in Headgate, bounded "+
			"to the first number, take the place of others. Memory is what the process takes of the machine, less what it took before. The longest decision when it is full is "+
			"the shortest of three such, of %d new keys each, by the clock and by the CPU time of the thread: what the system does to a thread now and then is in the "+
			"contender that does nothing, too. A process of its own for each, once.", s.HugeKeys, s.HugeKeys/20),
		Columns: []report.Column{
			{Name: perKey, Unit: report.Bytes, LessIsBetter: true}, {Name: heap, Unit: report.Bytes, LessIsBetter: true},
			{Name: collection, Unit: report.Seconds, LessIsBetter: true}, {Name: decision, Unit: report.Seconds, LessIsBetter: true},
			{Name: longestFull, Unit: report.Seconds, LessIsBetter: true}, {Name: clockFull, Unit: report.Seconds, LessIsBetter: true},
			{Name: clockFill, Unit: report.Seconds, LessIsBetter: true},
		},
		Goals: []report.Goal{
			{Column: perKey, Target: 64, Most: true},
			{Column: collection, To: nothingName, Target: 2, Most: true},
			{Column: longestFull, Target: 0.001, Most: true},
		},
	}
	for _, name := range []string{string(report.Headgate), "x/time/rate in a sync.Map", "sethvargo/go-limiter", nothingName} {
		e, err := sizeOf(ctx, name, s.HugeKeys)
		if err != nil {
			return row, fmt.Errorf("%s: %w", name, err)
		}
		row.Entries = append(row.Entries, e)
		bytes, _ := e.Median(perKey)
		s.Progress(fmt.Sprintf("%s: %.1f bytes a key%s", name, bytes, e.Missing))
	}
	return row, nil
}

// sizeOf measures a limiter, unless the machine has no room for it.
func sizeOf(ctx context.Context, name string, keys int) (report.Entry, error) {
	l, err := named(name)
	e := report.Entry{Name: l.name, Kind: l.kind}
	if err != nil {
		return e, err
	}
	if need, have := l.perKey*int64(keys), machine.Available(); have > 0 && need > have {
		e.Missing = fmt.Sprintf("it may need %d MiB of memory, and %d are free", need>>20, have>>20)
		return e, nil
	}
	var r size
	if err := worker.Run(ctx, SizeJob, sizeSpec{Limiter: name, Quota: quota{100, time.Hour}, Keys: keys}, &r); err != nil {
		var ended interface{ ExitCode() int }
		if errors.As(err, &ended) && ended.ExitCode() < 0 { // the system took it away
			e.Missing = err.Error()
			return e, nil
		}
		return e, err
	}
	if r.Allocated {
		e.Add(perKey, max(0, r.PerKey))
	}
	e.Add(heap, max(0, r.Heap))
	e.Add(collection, r.GC.Seconds())
	e.Add(decision, r.Decision.Seconds())
	if _, known := machine.ThreadTime(); known {
		e.Add(longestFull, r.Full.CPU.Seconds())
	}
	e.Add(clockFill, r.Filling.Seconds())
	e.Add(clockFull, r.Full.Clock.Seconds())
	return e, nil
}
