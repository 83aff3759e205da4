package cli

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/load"
)

type benchCmd struct {
	Redis       string        `placeholder:"URL" help:"Take decisions from this Redis: ${redis_forms}."`
	URL         string        `placeholder:"URL" help:"Send requests to this gateway, or anything else that speaks HTTP. {key} stands for the number of the key."`
	Memory      bool          `help:"Take decisions in this process, to try it out."`
	Limit       string        `placeholder:"LIMIT" help:"What each key is held to, such as \"100/s\" or \"5/s burst 10\". With --url: what the gateway is told to permit; without it nothing is compared."`
	Rate        string        `default:"1000/s" help:"How many requests are due, such as 5000/s or 90/minute."`
	Duration    time.Duration `default:"10s" help:"How long requests fall due."`
	Warmup      time.Duration `default:"0s" help:"So much longer before that, without counting."`
	Keys        int           `help:"How many keys are used, each as often. By default 1000, or one if no {key} stands in --url or --header."`
	Hot         bool          `help:"Some keys are used far more often than others (Zipf's law): of 1000 the first by a sixth of all requests."`
	Poisson     bool          `help:"Requests are due at random instants, as those of many callers are, and not evenly spaced."`
	MaxInFlight int           `default:"1000" placeholder:"N" help:"What is due while so many requests are under way is dropped and counted."`
	Timeout     time.Duration `default:"5s" help:"For one request to be answered."`
	Header      []string      `sep:"none" placeholder:"LINE" help:"With --url: \"Name: value\", in which {key} stands for the number of the key. May be repeated."`
	Method      string        `default:"GET" help:"With --url: the method of the requests."`
	Yes         bool          `help:"Also load what is not on this machine."`
	JSON        bool          `help:"Print the report as JSON."`
}

// Help implements [kong.HelpProvider].
func (*benchCmd) Help() string {
	return `Puts load on a Redis or a gateway of yours, shows how long answers take, and compares what was allowed with what the limit permits.

Requests are due at a constant rate, however long answers take, and latency is counted from when a request was due: a server that stalls
for a second is seen to do so by all requests of that second. Nothing is slowed down in silence: what cannot be sent is counted as dropped.

With --redis, keys begin with headgate-bench: and are removed at the end, also after Ctrl-C; nothing else is touched. With --url, what is
below 400 counts as allowed, 429 as denied, the rest as errors. What is not on this machine is only loaded with --yes. docs/bench.md says
how the figures are to be read.

Exit codes: 0 the limit held and no request failed, 1 more was allowed than the limit permits, or requests failed, or nothing was measured,
2 wrong usage.

Examples:

  headgate bench --memory --limit 100/s
  headgate bench --redis redis://127.0.0.1:6379/0 --limit 100/s --keys 1000 --rate 5000/s --duration 30s
  headgate bench --url http://127.0.0.1:8080/ --header "X-API-Key: demo-free" --limit "5/s burst 10" --rate 200/s
  headgate bench --url http://127.0.0.1:8080/ --header "X-API-Key: customer-{key}" --keys 50 --hot --json | jq .latency.all`
}

// Run implements the subcommand.
func (c *benchCmd) Run(out output) error {
	cfg, err := c.plan()
	if err != nil {
		return err
	}
	target, err := c.target(cfg)
	if err != nil {
		return err
	}
	ctx, stop := untilSignal()
	defer stop()
	report, err := target.run(ctx, out, cfg)
	if err != nil {
		_ = target.close() // what is wrong is said once
		return err
	}
	err = c.print(out, target.name, report)
	if closeErr := target.close(); err == nil {
		err = closeErr
	}
	if err == nil && !report.Good() {
		return &failure{code: exitFailed}
	}
	return err
}

// plan checks the flags and makes all of the load but its target.
func (c *benchCmd) plan() (load.Config, error) {
	cfg := load.Config{
		KeyCount: c.Keys, Warmup: c.Warmup, Duration: c.Duration, MaxInFlight: c.MaxInFlight, Timeout: c.Timeout, Fresh: c.URL == "",
	}
	if err := c.checkFlags(); err != nil {
		return cfg, err
	}
	if c.Limit != "" {
		l, err := headgate.ParseLimit(c.Limit)
		if err != nil {
			return cfg, usageError("--limit: %v", err)
		}
		cfg.Limit = &l
	}
	if err := c.spread(&cfg); err != nil {
		return cfg, err
	}
	return cfg, c.pace(&cfg)
}

func (c *benchCmd) checkFlags() error {
	chosen := 0
	for _, set := range []bool{c.Redis != "", c.URL != "", c.Memory} {
		if set {
			chosen++
		}
	}
	switch {
	case chosen != 1:
		return usageError("bench wants one of --redis, --url and --memory")
	case c.Limit == "" && c.URL == "":
		return usageError("--limit is missing: what each key is held to, such as 100/s")
	case c.URL == "" && len(c.Header) > 0:
		return usageError("--header has no use without --url")
	case c.Duration <= 0 || c.Warmup < 0:
		return usageError("--duration wants a time above 0, --warmup one of 0 or more")
	case c.MaxInFlight < 1 || c.MaxInFlight > maxInFlight:
		return usageError("--max-in-flight %d, want 1 to %d", c.MaxInFlight, maxInFlight)
	case c.Timeout <= 0 || c.Timeout > load.MaxTimeout:
		return usageError("--timeout %v, want more than 0 and at most %v", c.Timeout, load.MaxTimeout)
	case c.Keys < 0 || c.Keys > load.MaxKeys:
		return usageError("--keys %d, want 1 to %d", c.Keys, load.MaxKeys)
	}
	return nil
}

// maxInFlight is where the memory of requests under way, and the connections of this machine, would end.
const maxInFlight = 50_000

// defaultKeys is how many keys are used where it does not matter much.
const defaultKeys = 1000

// spread chooses the keys.
func (c *benchCmd) spread(cfg *load.Config) error {
	keyed := c.URL == "" || load.HTTPConfig{URL: c.URL, Headers: c.Header}.Keyed()
	switch {
	case !keyed && (cfg.KeyCount > 1 || c.Hot):
		return usageError("--keys and --hot have no use where all requests are the same: write {key} into --url or --header")
	case cfg.KeyCount == 0 && keyed:
		cfg.KeyCount = defaultKeys
	}
	random := newRandom()
	switch {
	case cfg.KeyCount <= 1:
		cfg.KeyCount = 1
	case c.Hot:
		cfg.Keys = load.Hot(cfg.KeyCount, random)
	default:
		cfg.Keys = load.Uniform(cfg.KeyCount, random)
	}
	return nil
}

// pace chooses when requests are due.
func (c *benchCmd) pace(cfg *load.Config) error {
	rate, err := headgate.ParseLimit(c.Rate)
	if err != nil || rate.Count == 0 || rate.Burst != 0 || rate.Algorithm != headgate.TokenBucket {
		return usageError("--rate %q, want a form such as 5000/s or 90/minute", c.Rate)
	}
	if c.requests(rate) > load.MaxRequests {
		return usageError("%v for %v is more than %d requests, which would not fit into memory: want a lower --rate or --duration",
			c.Rate, c.Warmup+c.Duration, load.MaxRequests)
	}
	if c.Poisson {
		cfg.Arrivals = load.Poisson(rate.Count, rate.Period, newRandom())
	} else {
		cfg.Arrivals = load.Constant(rate.Count, rate.Period)
	}
	return nil
}

// requests returns how many are due.
func (c *benchCmd) requests(rate headgate.Limit) float64 {
	return float64(rate.Count) * (c.Warmup + c.Duration).Seconds() / rate.Period.Seconds()
}

func newRandom() *rand.Rand { return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())) }

// benchJSON is a report for programs to read.
type benchJSON struct {
	Target  string      `json:"target"`
	Rate    string      `json:"rate"`
	Verdict load.Result `json:"verdict"`
	Good    bool        `json:"good"`
	*load.Report
}

func (c *benchCmd) print(out output, target string, r *load.Report) error {
	if c.JSON {
		return writeJSON(out.stdout, benchJSON{target, c.Rate, r.Result(), r.Good(), r})
	}
	if _, err := fmt.Fprintf(out.stdout, "%s, %s for %v\n\n", target, c.Rate, c.Duration); err != nil {
		return err
	}
	return r.WriteText(out.stdout)
}

// target opens what is put under load.
func (c *benchCmd) target(cfg load.Config) (*benchTarget, error) {
	switch {
	case c.Memory:
		return memoryTarget(cfg)
	case c.Redis != "":
		u, err := config.ParseRedisURL(c.Redis)
		if err != nil {
			return nil, usageError("--redis: %v, want %s", err, config.RedisForms)
		}
		if err := c.consent(u.Addrs...); err != nil {
			return nil, err
		}
		return redisTarget(u, cfg)
	default:
		t, err := load.NewHTTP(load.HTTPConfig{URL: c.URL, Method: c.Method, Headers: c.Header, MaxIdle: c.MaxInFlight})
		if err != nil {
			return nil, usageError("--url and its --header: %v", err)
		}
		if err := c.consent(t.Addr()); err != nil {
			return nil, err
		}
		return httpTarget(t), nil
	}
}

// consent refuses to load other machines unless that was asked for.
func (c *benchCmd) consent(addrs ...string) error {
	for _, addr := range addrs {
		if !c.Yes && !loopback(addr) {
			return usageError("%s is not this machine, and whoever else uses it would feel the load: add --yes if that is meant", addr)
		}
	}
	return nil
}

// check is bounded by this, not by --timeout, which may be far shorter than a first connection takes.
const checkTimeout = 5 * time.Second

// run makes sure that there is somebody to answer, and then puts the load on.
func (t *benchTarget) run(ctx context.Context, out output, cfg load.Config) (*load.Report, error) {
	checking, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	warning, err := t.check(checking)
	if err != nil {
		return nil, err
	}
	if warning != "" {
		if _, err := fmt.Fprintf(out.stderr, "headgate: %s\n", warning); err != nil {
			return nil, err
		}
	}
	cfg.Target, cfg.Progress = t.Target, progressTo(out.stderr)
	report, err := load.Run(ctx, cfg)
	endProgress(out.stderr)
	return report, err
}
