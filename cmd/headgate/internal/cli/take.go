package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
)

type takeCmd struct {
	Key     string        `required:"" help:"Who pays: any text of at most 1 KiB."`
	Limit   []string      `required:"" sep:"none" placeholder:"LIMIT" help:"Such as \"100/s\" or \"100/minute burst 20\"; several are decided together."`
	Redis   string        `required:"" placeholder:"URL" help:"The shared store: ${redis_forms}."`
	Cost    int64         `default:"1" help:"Tokens to take. 0 looks and takes nothing."`
	Prefix  string        `default:"headgate:" help:"Begins all keys in Redis."`
	Timeout time.Duration `default:"1s" help:"For the store to decide."`
	Wait    bool          `help:"Wait until the tokens are granted."`
	MaxWait time.Duration `placeholder:"DURATION" help:"With --wait, give up when it would take longer than this. 0 = wait for as long as it takes."`
	JSON    bool          `help:"Print the decision as JSON."`
}

// Help implements [kong.HelpProvider].
func (*takeCmd) Help() string {
	return `Takes tokens of a key under limits, so that a script can limit itself, and many hosts together.

Exit codes: 0 allowed, 1 denied, 2 wrong usage, 3 the store could not decide (whether tokens were taken is then unknown).

Examples:

  headgate take --redis redis://127.0.0.1:6379/0 --key nightly --limit 5/minute && ./call-the-partner
  headgate take --redis redis://127.0.0.1:6379/0 --key mail --limit 10/s --limit 5000/day --wait && ./send-mail
  headgate take --redis redis://127.0.0.1:6379/0 --key mail --limit 10/s --cost 0 --json   # look only`
}

// Run implements the subcommand.
func (c *takeCmd) Run(out output) error {
	limits, store, err := c.read()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.DiscardHandler) // an error is reported once, below
	shared, _, closeStore, err := openStore(store, log)
	if err != nil {
		return usageError("%v", err)
	}
	var last headgate.Observation
	limiter, err := headgate.New(shared, limits, headgate.Config{
		Timeout: c.Timeout, Logger: log, Observer: headgate.ObserverFunc(func(_ context.Context, o headgate.Observation) { last = o }),
	})
	if err != nil {
		return usageError("%v", errors.Join(err, closeStore()))
	}
	err = c.take(ctx, limiter)
	_ = closeStore() // the decision stands, however the connection ends
	return c.answer(out, last.Decision, err)
}

// read checks the flags, so that no wrong one reaches the store.
func (c *takeCmd) read() ([]headgate.Limit, *config.Redis, error) {
	var limits []headgate.Limit
	for _, text := range c.Limit {
		l, err := headgate.ParseLimit(text)
		if err != nil {
			return nil, nil, usageError("--limit: %v", err)
		}
		limits = append(limits, l)
		if err := (headgate.Charge{Key: c.Key, Cost: c.Cost, Limit: l}).Validate(); err != nil {
			return nil, nil, usageError("%v", err)
		}
	}
	if c.Timeout <= 0 || c.MaxWait < 0 {
		return nil, nil, usageError("--timeout wants a duration above 0, --max-wait one of 0 or more")
	}
	if c.MaxWait > 0 && !c.Wait {
		return nil, nil, usageError("--max-wait has no use without --wait")
	}
	u, err := config.ParseRedisURL(c.Redis)
	if err != nil {
		return nil, nil, usageError("--redis: %v, want %s", err, config.RedisForms)
	}
	return limits, &config.Redis{URL: u, Timeout: c.Timeout, Prefix: c.Prefix}, nil
}

// take asks once, or until there is room. The decision comes by the observer.
func (c *takeCmd) take(ctx context.Context, limiter *headgate.Limiter) error {
	if !c.Wait || c.Cost == 0 {
		_, err := limiter.AllowN(ctx, c.Key, c.Cost)
		return err
	}
	if c.MaxWait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.MaxWait)
		defer cancel()
	}
	return limiter.Wait(ctx, c.Key, c.Cost)
}

// answer prints the decision, and turns it and err into the exit code.
func (c *takeCmd) answer(out output, d headgate.Decision, err error) error {
	switch {
	case errors.Is(err, headgate.ErrStore):
		return &failure{code: exitUndecided, text: err.Error()}
	case errors.Is(err, headgate.ErrExceedsCapacity), errors.Is(err, context.DeadlineExceeded):
		d.Allowed = false
	case errors.Is(err, context.Canceled):
		return &failure{code: exitFailed, text: "interrupted; nothing was taken"}
	case err != nil:
		return usageError("%v", err)
	}
	if err := c.print(out, d); err != nil {
		return err
	}
	if !d.Allowed {
		return &failure{code: exitFailed}
	}
	return nil
}

// decisionJSON is a decision for programs to read.
type decisionJSON struct {
	Allowed      bool   `json:"allowed"`
	Limit        string `json:"limit"`     // the binding one
	Remaining    int64  `json:"remaining"` // whole tokens left under it
	RetryAfterMS *int64 `json:"retry_after_ms"`
	ResetAfterMS int64  `json:"reset_after_ms"`
}

func (c *takeCmd) print(out output, d headgate.Decision) error {
	if c.JSON {
		j := decisionJSON{Allowed: d.Allowed, Limit: d.Limit.String(), Remaining: d.Remaining, ResetAfterMS: millis(d.ResetAfter)}
		if d.RetryAfter != headgate.Never {
			ms := millis(d.RetryAfter)
			j.RetryAfterMS = &ms
		}
		return writeJSON(out.stdout, j)
	}
	word, retry := "allowed", ""
	if !d.Allowed {
		word, retry = "denied", " retry-after="+d.RetryAfter.String()
		if d.RetryAfter == headgate.Never {
			retry = " retry-after=never"
		}
	}
	_, err := fmt.Fprintf(out.stdout, "%s limit=%q remaining=%d%s reset-after=%s\n", word, d.Limit.String(), d.Remaining, retry, d.ResetAfter)
	return err
}

// millis rounds up: who waits for so long does not come too early.
func millis(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }
