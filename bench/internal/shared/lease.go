package shared

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/bench/internal/load"
	"github.com/headgate/headgate/bench/internal/report"
	"github.com/headgate/headgate/bench/internal/trial"
	"github.com/headgate/headgate/lease"
	"github.com/headgate/headgate/redisstore"
	"github.com/headgate/headgate/redisstore/redistest"
)

const (
	callsPerDecision = "Redis calls a decision"
	stranded         = "tokens stranded"

	leaseKeys    = 10
	leaseOffered = 5000 // decisions a second, of all keys
	leaseCount   = 1000 // permitted of each key in a second, twice what is offered
)

// A metered is a way to decide, the server that is asked, and the tokens that were wasted so far.
type metered struct {
	name     string
	decide   load.Decide
	client   *redis.Client
	permits  load.Permits
	stranded func() int64
}

// measureLease counts what one caller asks of Redis at a constant rate, with and without leases.
func measureLease(ctx context.Context, tb testing.TB, s trial.Settings) (report.Row, error) {
	row := report.Row{
		About: fmt.Sprintf("One caller asks for %d keys of %d a second, %d times a second in all, with `lease.New` before the store and without: the scripts that Redis ran, by its own "+
			"account, divided by the decisions. One caller, since takes that come together share a call anyway. With leases a key may have what it could over the time "+
			"of a lease (%v) longer, and not one token more.", leaseKeys, leaseCount, leaseOffered, lease.DefaultLifetime),
		Columns: []report.Column{
			{Name: callsPerDecision, Unit: report.Count, LessIsBetter: true}, {Name: stranded, Unit: report.Count, LessIsBetter: true},
			{Name: trial.Throughput, Unit: report.PerSecond},
		},
		Goals: []report.Goal{{Column: callsPerDecision, Of: leasesName, To: exactName, Target: 1.0 / 20, Most: true}},
	}
	all, err := openMetered(tb)
	if err != nil {
		return row, err
	}
	names := make([]string, len(all))
	for i, m := range all {
		names[i] = m.name
		row.Entries = append(row.Entries, report.Entry{Name: m.name, Kind: report.Headgate})
	}
	err = s.Turns(ctx, names, func(i int) (string, error) { return all[i].turn(ctx, s, &row.Entries[i]) })
	return row, err
}

const (
	exactName  = "Headgate"
	leasesName = "Headgate, leases"
)

// openMetered returns Headgate without leases and with them, on servers of their own.
func openMetered(tb testing.TB) ([]metered, error) {
	limit := headgate.Limit{Count: leaseCount, Period: period}
	var all []metered
	for _, name := range []string{exactName, leasesName} {
		client := newClient(redistest.Start(tb))
		store, err := openStore(tb, client, redisstore.Config{SweepInterval: -1})
		if err != nil {
			return nil, err
		}
		m := metered{name: name, client: client, decide: take(store, limit), stranded: func() int64 { return 0 }, permits: load.Bucket(leaseCount, leaseCount, period)}
		if name == leasesName {
			leases, err := lease.New(store, lease.Config{})
			if err != nil {
				return nil, err
			}
			tb.Cleanup(func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				_ = leases.Close(ctx) // what it holds is of no use to anybody
			})
			exact := m.permits
			m.permits = func(d time.Duration) int64 { return exact(d + lease.DefaultLifetime) }
			m.decide, m.stranded = take(leases, limit), func() int64 { return leases.Stats().Stranded }
		}
		all = append(all, m)
	}
	return all, nil
}

// turn works for twice the time of a turn, so that what happens once in a lease happens.
func (m metered) turn(ctx context.Context, s trial.Settings, e *report.Entry) (string, error) {
	before, err := scriptsRun(ctx, m.client)
	if err != nil {
		return "", err
	}
	wasted := m.stranded()
	r := load.Turn{Callers: 1, Keys: trial.Tenants(leaseKeys), For: 2 * s.Turn, Sample: 1, Decide: paced(m.decide, leaseOffered)}.Run(ctx)
	after, err := scriptsRun(ctx, m.client)
	calls := float64(after-before) / float64(r.Decided)
	e.Add(callsPerDecision, calls)
	e.Add(stranded, float64(m.stranded()-wasted))
	e.Add(trial.Throughput, r.Rate())
	trial.Faults(e, r, m.permits)
	return fmt.Sprintf("%.4f calls a decision", calls), err
}

// paced lets so many calls go on in a second: each waits until it is due.
func paced(decide load.Decide, perSecond int64) load.Decide {
	var calls atomic.Int64
	begun := time.Now()
	return func(ctx context.Context, key string) (bool, error) {
		due := begun.Add(time.Duration(calls.Add(1)) * time.Second / time.Duration(perSecond))
		if wait := time.Until(due); wait > 0 {
			timer := time.NewTimer(wait)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
				return false, ctx.Err()
			}
		}
		return decide(ctx, key)
	}
}

// scriptsRun returns how many scripts a server has run.
func scriptsRun(ctx context.Context, client *redis.Client) (int64, error) {
	text, err := client.Info(ctx, "commandstats").Result()
	if err != nil {
		return 0, err
	}
	sum := int64(0)
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), ":calls=")
		if name != "cmdstat_evalsha" && name != "cmdstat_eval" {
			continue
		}
		calls, _, _ := strings.Cut(rest, ",")
		n, err := strconv.ParseInt(calls, 10, 64)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}
