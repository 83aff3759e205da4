package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/gateway"
)

type serveCmd struct {
	Config    string        `short:"c" placeholder:"FILE" help:"Configuration file. Without one, a demo: in memory, with two tenants and an upstream of its own."`
	Listen    string        `placeholder:"HOST:PORT" help:"Where to listen, instead of what the file says (127.0.0.1:8080). Port 0 = a free one."`
	Grace     time.Duration `default:"10s" help:"How long requests under way may take to finish once the program is told to end."`
	LogLevel  string        `enum:"debug,info,warn,error" default:"info" help:"Least important lines to log: ${enum}."`
	LogFormat string        `enum:"text,json" default:"text" help:"Form of log lines on stderr: ${enum}."`
}

// Help implements [kong.HelpProvider].
func (*serveCmd) Help() string {
	return `Runs the gateway until it is told to end by Ctrl-C or SIGTERM; then it stops accepting, finishes the requests under way and exits
with 0. docs/config.md in the repository describes the file; headgate check says what is wrong in one.

With on_store_error a route says what its callers get while the shared store cannot answer: it need not be up at the start.

Examples:

  headgate serve                                        # the demo, on 127.0.0.1:8080
  headgate serve --config headgate.yaml
  headgate serve --config headgate.yaml --listen 127.0.0.1:8081   # a second one beside it: with redis they share one budget`
}

// Run implements the subcommand.
func (c *serveCmd) Run(out output) error {
	if c.Grace < 0 {
		return usageError("--grace %s, want 0 or more", c.Grace)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	log := c.logger(out)
	var d *demo
	cfg, err := c.load(log, &d)
	if err != nil {
		return err
	}
	store, closeStore, err := openStore(cfg.Store, log)
	if err != nil {
		return errors.Join(err, d.close())
	}
	g, err := gateway.New(cfg, gatewayOptions(cfg, store, log))
	if err != nil {
		return errors.Join(err, closeStore(), d.close())
	}
	s, err := newServer(cfg, g, d, c.Grace, log)
	if err != nil {
		return errors.Join(err, closeStore(), d.close())
	}
	_, err = fmt.Fprint(out.stdout, banner(cfg, s, d))
	if err == nil {
		err = s.run(ctx)
	}
	g.Close()
	return errors.Join(err, closeStore())
}

func (c *serveCmd) logger(out output) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		level = slog.LevelInfo // the grammar admits only levels
	}
	o := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(out.stderr, o))
	}
	return slog.New(slog.NewTextHandler(out.stderr, o))
}

// load returns the file's configuration, or that of a demo, which it makes.
func (c *serveCmd) load(log *slog.Logger, d **demo) (*config.Config, error) {
	var cfg *config.Config
	var err error
	if c.Config == "" {
		if *d, err = newDemo(log); err != nil {
			return nil, err
		}
		cfg, err = (*d).config()
	} else {
		cfg, err = config.Load(c.Config)
	}
	if err != nil {
		return nil, &failure{code: exitUsage, text: "the configuration is not right\n" + err.Error()}
	}
	if c.Listen != "" {
		if err := config.CheckListen(c.Listen); err != nil {
			return nil, usageError("--listen: %v, want an address such as 127.0.0.1:8080", err)
		}
		cfg.Listen = c.Listen
	}
	return cfg, nil
}

func gatewayOptions(cfg *config.Config, store headgate.Store, log *slog.Logger) gateway.Options {
	o := gateway.Options{Store: store, Replicas: 1, Log: log}
	if cfg.Store != nil {
		o.Timeout, o.Replicas = cfg.Store.Timeout, cfg.Store.Replicas
	}
	return o
}

// banner tells people where the gateway is, and for a demo what to try.
func banner(cfg *config.Config, s *server, d *demo) string {
	var b strings.Builder
	store := "in memory"
	if cfg.Store != nil {
		store = cfg.Store.URL.String()
	}
	url := "http://" + s.public.addr()
	fmt.Fprintf(&b, "headgate listens on %s (store: %s)\n", url, store)
	if s.admin != nil {
		fmt.Fprintf(&b, "health is at http://%s/healthz\n", s.admin.addr())
	}
	if d == nil {
		return b.String()
	}
	fmt.Fprintf(&b, `the built-in upstream is at http://%[2]s

Try it:

  curl -i -H 'X-API-Key: demo-free' %[1]s/hello    # 5/s, burst 10
  curl -i -H 'X-API-Key: demo-pro' %[1]s/hello     # 100/s
  for i in $(seq 15); do curl -s -o /dev/null -w '%%{http_code} ' -H 'X-API-Key: demo-free' %[1]s/; done; echo
  curl -i %[1]s/                                   # 401: no key

Ctrl-C ends it.
`, url, d.addr())
	return b.String()
}
