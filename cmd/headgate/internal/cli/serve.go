package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
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

When the file changes, and on SIGHUP, it is read again. If all is right in it, it comes into force at once and as a whole, without a
restart and with all that was used kept; if not, the log says what is wrong and the running configuration stays.

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
	ctx, stop := untilSignal()
	defer stop()
	hangups, unhang := onHangup()
	defer unhang()
	r, err := c.open(c.logger(out))
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(out.stdout, r.banner())
	if err == nil {
		err = r.run(ctx, hangups)
	}
	return errors.Join(err, r.close())
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

// banner tells people where the gateway is, and for a demo what to try.
func (r *running) banner() string {
	var b strings.Builder
	cfg, s, d := r.config.Load(), r.server, r.demo
	store := "in memory"
	if cfg.Store != nil {
		store = cfg.Store.URL.String()
	}
	url := "http://" + s.public.addr()
	if r.cert != nil {
		url = "https://" + s.public.addr()
	}
	fmt.Fprintf(&b, "headgate listens on %s (store: %s)\n", url, store)
	if s.admin != nil {
		fmt.Fprintf(&b, "health is at http://%s/readyz\n", s.admin.addr())
	}
	if s.admin != nil {
		fmt.Fprintf(&b, "metrics are at http://%s/metrics\n", s.admin.addr())
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
