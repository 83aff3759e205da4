package shared

import (
	"context"
	"fmt"
	"testing"

	"github.com/headgate/headgate/bench/internal/report"
	"github.com/headgate/headgate/bench/internal/trial"
	"github.com/headgate/headgate/redisstore/redistest"
)

// under is load: one call in eight is timed.
func under(callers, keys int) trial.Work {
	return trial.Work{Callers: callers, Keys: trial.Tenants(keys), Sample: 8}
}

// compete has contenders take turns, each on a server of its own: what it leaves there is in nobody's way.
func compete(ctx context.Context, tb testing.TB, s trial.Settings, w trial.Work, contenders ...contender) ([]report.Entry, error) {
	entries := make([]report.Entry, len(contenders))
	seats := make([]trial.Seat, len(contenders))
	for i, c := range contenders {
		entries[i] = report.Entry{Name: c.name, Kind: c.kind}
		decide, err := c.open(tb, newClient(redistest.Start(tb)))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		seats[i] = trial.Seat{Decide: decide, Permits: c.permits, Entry: &entries[i]}
	}
	return entries, w.Run(ctx, s, seats)
}
