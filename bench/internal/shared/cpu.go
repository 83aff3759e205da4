package shared

import (
	"context"
	_ "embed"
	"encoding"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/bench/internal/load"
	"github.com/headgate/headgate/bench/internal/report"
	"github.com/headgate/headgate/bench/internal/trial"
	"github.com/headgate/headgate/redisstore"
	"github.com/headgate/headgate/redisstore/redistest"
)

const (
	serverTime = "CPU a decision"
	emptyName  = "EVALSHA that does nothing, pipelined"
	aloneName  = "Headgate, one a call"
	hotName    = "Headgate, one hot key"
	batchName  = "Headgate, many keys in batches"
)

// pipelined is how many commands a pipeline holds where the client is to be out of the way.
const pipelined = 100

// hashScript is a token bucket as it is often written: a hash for each key.
//
//go:embed script/hash.lua
var hashScript string

// A job works for a while and returns how many decisions were made.
type job func(ctx context.Context, d time.Duration) (*load.Result, error)

// A bench is a job and the server whose time it takes.
type bench struct {
	entry   *report.Entry
	client  *redis.Client
	job     job
	permits load.Permits // nil = its grants are not counted
}

// measureCPU measures by the server's own account of its CPU time.
func measureCPU(ctx context.Context, tb testing.TB, s trial.Settings) (report.Row, error) {
	row := report.Row{
		About: fmt.Sprintf("CPU time of the server, by its own account (`used_cpu_user` and `used_cpu_sys`), divided by the decisions. In batches, and of a hot key: what %d callers "+
			"cause, %d keys and one. One a call: what Headgate sends for one caller, recorded and sent again in pipelines of %d, as are the commands beside it, so that "+
			"reading and writing weigh on all alike. Targets are multiples of the script that does nothing.", s.ManyCallers, s.Keys, pipelined),
		Columns: []report.Column{{Name: serverTime, Unit: report.Seconds, LessIsBetter: true}, {Name: trial.Throughput, Unit: report.PerSecond}},
		Goals: []report.Goal{
			{Column: serverTime, Of: batchName, To: emptyName, Target: 2.0 / 1.4, Most: true},
			{Column: serverTime, Of: aloneName, To: emptyName, Target: 7.5 / 1.4, Most: true},
			{Column: serverTime, Of: hotName, To: emptyName, Target: 0.1, Most: true},
		},
	}
	row.Entries = []report.Entry{
		{Name: batchName, Kind: report.Headgate}, {Name: hotName, Kind: report.Headgate}, {Name: aloneName, Kind: report.Headgate},
		{Name: "hash for each key, pipelined", Kind: report.Peer}, {Name: emptyName, Kind: report.Wall}, {Name: "INCR, pipelined", Kind: report.Wall},
	}
	var benches []bench
	for i := range row.Entries {
		e := &row.Entries[i]
		client := newClient(redistest.Start(tb))
		j, err := jobOf(ctx, tb, s, e.Name, client)
		if err != nil {
			return row, fmt.Errorf("%s: %w", e.Name, err)
		}
		b := bench{entry: e, client: client, job: j}
		if e.Name == batchName || e.Name == hotName {
			b.permits = ours().permits
		}
		benches = append(benches, b)
	}
	for _, b := range benches { // keys that are new cost more, once
		if _, err := b.job(ctx, s.Turn/2); err != nil {
			return row, fmt.Errorf("%s: %w", b.entry.Name, err)
		}
	}
	return row, costTurns(ctx, s, benches)
}

func costTurns(ctx context.Context, s trial.Settings, benches []bench) error {
	names := make([]string, len(benches))
	for i := range benches {
		names[i] = benches[i].entry.Name
	}
	return s.Turns(ctx, names, func(i int) (string, error) {
		b := benches[i]
		before, err := cpuTime(ctx, b.client)
		if err != nil {
			return "", err
		}
		r, err := b.job(ctx, s.Turn)
		if err != nil {
			return "", err
		}
		after, err := cpuTime(ctx, b.client)
		if err != nil {
			return "", err
		}
		cost := (after - before) / float64(r.Decided)
		b.entry.Add(serverTime, cost)
		b.entry.Add(trial.Throughput, r.Rate())
		trial.Faults(b.entry, r, b.permits)
		return fmt.Sprintf("%.2f µs", cost*1e6), nil
	})
}

// jobOf returns what an entry of the row does.
func jobOf(ctx context.Context, tb testing.TB, s trial.Settings, name string, client *redis.Client) (job, error) {
	keys := trial.Tenants(s.Keys)
	switch name {
	case batchName:
		return callers(tb, client, s.ManyCallers, keys)
	case hotName:
		return callers(tb, client, s.ManyCallers, keys[:1])
	case aloneName:
		recorded, err := record(ctx, tb, client, headgate.Limit{Count: count, Period: period}, keys)
		return replay(client, recorded), err
	case emptyName:
		err := emptyScript.Load(ctx, client).Err()
		return replay(client, each(keys, func(k string) []any { return []any{"EVALSHA", emptyScript.Hash(), 1, k} })), err
	case "INCR, pipelined":
		return replay(client, each(keys, func(k string) []any { return []any{"INCR", k} })), nil
	}
	script := redis.NewScript(hashScript)
	err := script.Load(ctx, client).Err()
	return replay(client, each(keys, func(k string) []any { return []any{"EVALSHA", script.Hash(), 1, k, count, count, 1} })), err
}

// callers is Headgate under load.
func callers(tb testing.TB, client *redis.Client, n int, keys []string) (job, error) {
	decide, err := ours().open(tb, client)
	return func(ctx context.Context, d time.Duration) (*load.Result, error) {
		return load.Turn{Callers: n, Keys: keys, For: d, Sample: 8, Decide: decide}.Run(ctx), nil
	}, err
}

func each(keys []string, command func(key string) []any) [][]any {
	commands := make([][]any, len(keys))
	for i, k := range keys {
		commands[i] = command(k)
	}
	return commands
}

// replay sends commands in pipelines, over and over.
func replay(client *redis.Client, commands [][]any) job {
	next := 0
	return func(ctx context.Context, d time.Duration) (*load.Result, error) {
		r, begun := new(load.Result), time.Now()
		for time.Since(begun) < d {
			pipeline := client.Pipeline()
			for range pipelined {
				pipeline.Do(ctx, commands[next]...)
				next = (next + 1) % len(commands)
			}
			if _, err := pipeline.Exec(ctx); err != nil {
				return nil, err
			}
			r.Decided += pipelined
		}
		r.Elapsed = time.Since(begun)
		return r, nil
	}
}

// record returns what Headgate sends for one caller, key by key.
func record(ctx context.Context, tb testing.TB, client *redis.Client, limit headgate.Limit, keys []string) ([][]any, error) {
	listener := new(recorder)
	listening := redis.NewClient(&redis.Options{Addr: client.Options().Addr, ContextTimeoutEnabled: true})
	tb.Cleanup(func() { _ = listening.Close() })
	listening.AddHook(listener)
	store, err := openStore(tb, listening, redisstore.Config{SweepInterval: -1})
	if err != nil {
		return nil, err
	}
	decide := take(store, limit)
	for _, k := range append(keys[:1:1], keys...) { // the first call may send the script
		if _, err := decide(ctx, k); err != nil {
			return nil, err
		}
	}
	if len(listener.scripts) < len(keys) {
		return nil, fmt.Errorf("%d scripts were sent for %d decisions: what Headgate sends is not seen", len(listener.scripts), len(keys))
	}
	return listener.scripts[len(listener.scripts)-len(keys):], nil
}

// A recorder keeps the scripts that a client calls, for one caller.
type recorder struct{ scripts [][]any }

func (r *recorder) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *recorder) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		r.keep(cmd)
		return next(ctx, cmd)
	}
}

func (r *recorder) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			r.keep(cmd)
		}
		return next(ctx, cmds)
	}
}

func (r *recorder) keep(cmd redis.Cmder) {
	if !strings.EqualFold(cmd.Name(), "evalsha") {
		return
	}
	args := slices.Clone(cmd.Args())
	for i := range args { // the sender may use what it points at again
		switch a := args[i].(type) {
		case []byte:
			args[i] = slices.Clone(a)
		case *string:
			args[i] = *a
		case encoding.BinaryMarshaler:
			text, err := a.MarshalBinary()
			if err != nil {
				return // the command fails too
			}
			args[i] = text
		}
	}
	r.scripts = append(r.scripts, args)
}

// cpuTime returns the seconds of CPU that a server has used.
func cpuTime(ctx context.Context, client *redis.Client) (float64, error) {
	item := client.InfoMap(ctx, "cpu").Item
	user, errUser := strconv.ParseFloat(item("CPU", "used_cpu_user"), 64)
	system, errSystem := strconv.ParseFloat(item("CPU", "used_cpu_sys"), 64)
	return user + system, errors.Join(errUser, errSystem)
}
