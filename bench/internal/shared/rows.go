package shared

import (
	"context"
	"fmt"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/bench/internal/report"
	"github.com/headgate/headgate/bench/internal/trial"
	"github.com/headgate/headgate/redisstore"
)

// Rows returns the rows about Redis.
func Rows() []trial.Row {
	return []trial.Row{
		{ID: "redis-hot", Title: "One hot key, through Redis", Measure: measureHot},
		{ID: "redis-keys", Title: "Many keys, through Redis", Measure: measureKeys},
		{ID: "redis-callers", Title: "Many keys, four times the callers, through Redis", Measure: measureCallers},
		{ID: "redis-algorithms", Title: "Every algorithm, through Redis", Measure: measureAlgorithms},
		{ID: "redis-latency", Title: "One caller, through Redis", Measure: measureLatency},
		{ID: "redis-cpu", Title: "Redis's CPU for a decision", Measure: measureCPU},
		{ID: "redis-memory", Title: "Redis's memory for a key", Measure: measureMemory},
		{ID: "leases", Title: "Leases", Measure: measureLease},
		{ID: "cluster", Title: "Shards on Redis Cluster", Measure: measureCluster},
	}
}

// said is what all contenders are held to.
const said = "Each key may have 100 a second, in a burst of 100. Every contender has a Redis of its own, on this machine, and 64 connections."

func measureHot(ctx context.Context, tb testing.TB, s trial.Settings) (report.Row, error) {
	w := under(s.Callers, 1)
	row := report.Row{
		About:   fmt.Sprintf("%d callers ask for one key at once, so nearly all are denied. %s", s.Callers, said),
		Columns: w.Columns(),
		Goals: []report.Goal{
			{Column: trial.Throughput, To: report.BestPeer, Target: 12},
			{Column: trial.P99, To: report.BestPeer, Target: 1.0 / 8, Most: true},
		},
	}
	var err error
	row.Entries, err = compete(ctx, tb, s, w, ours(), ululeLimiter(), redisRate(), throttledLimiter())
	return row, err
}

func measureKeys(ctx context.Context, tb testing.TB, s trial.Settings) (report.Row, error) {
	w := under(s.Callers, s.Keys)
	row := report.Row{
		About:   fmt.Sprintf("%d callers ask for %d keys at random, token bucket. %s INCR decides nothing.", s.Callers, s.Keys, said),
		Columns: w.Columns(),
		Goals: []report.Goal{
			{Column: trial.Throughput, To: report.BestPeer, Target: 4},
			{Column: trial.Throughput, To: redisRate().name, Target: 6},
			{Column: trial.P99, To: report.BestPeer, Target: 1.0 / 3, Most: true},
		},
	}
	var err error
	row.Entries, err = compete(ctx, tb, s, w, ours(), ululeLimiter(), redisRate(), throttledLimiter(), increments())
	return row, err
}

func measureCallers(ctx context.Context, tb testing.TB, s trial.Settings) (report.Row, error) {
	w := under(s.ManyCallers, s.Keys)
	row := report.Row{
		About:   fmt.Sprintf("The same, with %d callers.", s.ManyCallers),
		Columns: w.Columns(),
		Goals:   []report.Goal{{Column: trial.Throughput, To: report.BestPeer, Target: 6.5}},
	}
	var err error
	row.Entries, err = compete(ctx, tb, s, w, ours(), ululeLimiter(), redisRate(), throttledLimiter(), increments())
	return row, err
}

func measureAlgorithms(ctx context.Context, tb testing.TB, s trial.Settings) (report.Row, error) {
	w := under(s.Callers, s.Keys)
	row := report.Row{
		About: fmt.Sprintf("%d callers ask for %d keys at random, under each algorithm but the token bucket, which is above. %s The sliding log, whose work grows with "+
			"what it remembers, has no target.", s.Callers, s.Keys, said),
		Columns: w.Columns(),
	}
	contenders := []contender{ululeLimiter()}
	for _, a := range []headgate.Algorithm{headgate.FixedWindow, headgate.AlignedWindow, headgate.SlidingWindow, headgate.SlidingLog} {
		name := fmt.Sprintf("Headgate, %v", a)
		contenders = append(contenders, headgateWith(name, a, redisstore.Config{}))
		if a != headgate.SlidingLog {
			row.Goals = append(row.Goals, report.Goal{Column: trial.Throughput, Of: name, To: report.BestPeer, Target: 4})
		}
	}
	var err error
	row.Entries, err = compete(ctx, tb, s, w, contenders...)
	return row, err
}

func measureLatency(ctx context.Context, tb testing.TB, s trial.Settings) (report.Row, error) {
	w := trial.Work{Callers: 1, Keys: trial.Tenants(s.Keys), Sample: 1}
	columns := w.Columns()
	row := report.Row{
		About:   fmt.Sprintf("One caller asks for %d keys at random, one after the other. %s", s.Keys, said),
		Columns: []report.Column{columns[1], columns[2], columns[0]},
		Goals:   []report.Goal{{Column: trial.Median, To: roundTrip().name, Target: 1.10, Most: true}},
	}
	var err error
	row.Entries, err = compete(ctx, tb, s, w, ours(), roundTrip(), ululeLimiter(), redisRate(), throttledLimiter())
	return row, err
}
