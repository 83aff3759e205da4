// Package proxy measures the gateway beside a bare reverse proxy: processes of their own, before the same upstream.
package proxy

import (
	"context"
	"fmt"
	"testing"

	"github.com/headgate/headgate/bench/internal/load"
	"github.com/headgate/headgate/bench/internal/report"
	"github.com/headgate/headgate/bench/internal/trial"
	"github.com/headgate/headgate/bench/internal/worker"
	"github.com/headgate/headgate/redisstore/redistest"
)

// The names of the workers' jobs.
const (
	UpstreamJob = "upstream"
	BareJob     = "proxy"
)

const (
	bareName   = "ReverseProxy alone"
	memoryName = "Headgate, in memory"
	redisName  = "Headgate, Redis"

	callers = 64
)

// Rows returns the row about the gateway.
func Rows() []trial.Row {
	return []trial.Row{{ID: "gateway", Title: "The gateway beside a bare proxy", Measure: measure}}
}

func measure(ctx context.Context, tb testing.TB, s trial.Settings) (report.Row, error) {
	w := trial.Work{Callers: callers, Keys: []string{"bench"}, Sample: 1}
	row := report.Row{
		About: fmt.Sprintf("%d callers keep their connections and send one request after the other, with an API key, under a limit that never denies: `headgate serve` with its store in "+
			"memory and in Redis, and `net/http/httputil.ReverseProxy` alone with a transport of the same settings. Proxies and upstream are processes of their own.", callers),
		Columns: w.Columns(),
		Entries: []report.Entry{{Name: bareName, Kind: report.Wall}, {Name: memoryName, Kind: report.Headgate}, {Name: redisName, Kind: report.Headgate}},
		Goals: []report.Goal{
			{Column: trial.Throughput, Of: memoryName, To: bareName, Target: 0.93},
			{Column: trial.P99, Of: memoryName, To: bareName, Target: 1.1, Most: true},
			{Column: trial.Throughput, Of: redisName, To: bareName, Target: 0.80},
		},
	}
	addresses, err := start(ctx, tb, s.Program)
	if err != nil {
		return row, err
	}
	seats := make([]trial.Seat, len(addresses))
	for i, a := range addresses {
		seats[i] = trial.Seat{Decide: through(ctx, tb, a), Entry: &row.Entries[i]}
	}
	return row, w.Run(ctx, s, seats)
}

// start starts what is measured, in the order of the row's entries, and returns the addresses.
func start(ctx context.Context, tb testing.TB, program string) ([]string, error) {
	program, err := build(ctx, tb, program)
	if err != nil {
		return nil, err
	}
	upstream, err := worker.Serve(ctx, tb, UpstreamJob, nil)
	if err != nil {
		return nil, err
	}
	upstream = "http://" + upstream
	bare, err := worker.Serve(ctx, tb, BareJob, bareSpec{Upstream: upstream})
	if err != nil {
		return nil, err
	}
	inMemory, err := serve(ctx, tb, program, config(upstream, ""))
	if err != nil {
		return nil, err
	}
	inRedis, err := serve(ctx, tb, program, config(upstream, redistest.Start(tb).URL()))
	return []string{bare, inMemory, inRedis}, err
}

// through sends requests to an address, over connections that are kept. One that failed is not used again.
func through(ctx context.Context, tb testing.TB, address string) load.Decide {
	idle := make(chan *connection, callers)
	tb.Cleanup(func() {
		for {
			select {
			case c := <-idle:
				_ = c.Close()
			default:
				return
			}
		}
	})
	return func(context.Context, string) (bool, error) {
		var c *connection
		select {
		case c = <-idle:
		default:
			var err error
			if c, err = dial(ctx, address); err != nil {
				return false, err
			}
		}
		if err := c.call(); err != nil {
			_ = c.Close()
			return false, err
		}
		idle <- c
		return true, nil
	}
}
