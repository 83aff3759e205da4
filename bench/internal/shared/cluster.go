package shared

import (
	"context"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/bench/internal/report"
	"github.com/headgate/headgate/bench/internal/trial"
	"github.com/headgate/headgate/redisstore"
	"github.com/headgate/headgate/redisstore/redistest"
)

// measureCluster finds out how many shards serve best. It has no target.
func measureCluster(ctx context.Context, tb testing.TB, s trial.Settings) (report.Row, error) {
	w := under(s.Callers, s.Keys)
	row := report.Row{
		About: fmt.Sprintf("How many shards (`redisstore.Config.Shards`) serve clusters of three and of six masters best: %d callers ask for %d keys at random, token bucket, 100 a "+
			"second for each key. All masters share the cores of this machine, so more of them are not faster here: the row is about shards.", s.Callers, s.Keys),
		Columns: w.Columns(),
	}
	masters := []int{3, 6}
	shards := []int{3, 6, 8, 16, 32, 64}
	row.Entries = make([]report.Entry, 0, len(masters)*len(shards)) // seats point at them
	var seats []trial.Seat
	for _, m := range masters {
		cluster := redistest.StartCluster(tb, m)
		for _, n := range shards {
			name := fmt.Sprintf("Headgate, %d masters, %d shards", m, n)
			c := headgateWith(name, headgate.TokenBucket, redisstore.Config{Shards: n, Prefix: fmt.Sprintf("shards%d:", n)})
			decide, err := c.open(tb, cluster.Client(func(o *redis.ClusterOptions) { o.PoolSize = connections }))
			if err != nil {
				return row, fmt.Errorf("%s: %w", name, err)
			}
			row.Entries = append(row.Entries, report.Entry{Name: name, Kind: c.kind})
			seats = append(seats, trial.Seat{Decide: decide, Permits: c.permits, Entry: &row.Entries[len(row.Entries)-1]})
		}
	}
	return row, w.Run(ctx, s, seats)
}
