package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/bench/internal/inprocess"
	"github.com/headgate/headgate/bench/internal/proxy"
	"github.com/headgate/headgate/bench/internal/rls"
	"github.com/headgate/headgate/bench/internal/shared"
	"github.com/headgate/headgate/bench/internal/trial"
)

const usage = `Measures Headgate beside other rate limiters, and says for each row whether its target was reached. Contenders take turns on this machine, so
nothing else should be running on it. Needs redis-server in the PATH (REDISTEST_SERVER names another program) and Go, for the gateway.

Usage: bench [flags]

Examples:

  make bench                                          # all of it, into docs/benchmarks.md and docs/benchmarks.svg
  go run ./bench -quick                               # does everything work? Its figures say nothing
  go run ./bench -rows redis-hot,redis-keys           # two rows, on the terminal
  go run ./bench -rows gateway -rounds 9 -time 3s -json gateway.json
  go run ./bench -rows rls-keys -rls ratelimit=127.0.0.1:8081 -rls Headgate=127.0.0.1:9091

Flags:

`

var errHelped = errors.New("help was asked for")

// options are the command line.
type options struct {
	rows     []trial.Row
	settings trial.Settings
	quick    bool
	out      string // directory; "" = none
	json     string // file; "" = none
	command  string // how to have the same again
}

// rows returns all rows, in the order of the report.
func rows() []trial.Row {
	return slices.Concat(shared.Rows(), inprocess.Rows(), rls.Rows(), proxy.Rows())
}

// sizes are those of a run that counts, and of a quick one.
var sizes = map[bool]trial.Settings{
	false: {Rounds: 5, Turn: time.Second, Callers: 256, ManyCallers: 1024, Keys: 10_000, RedisKeys: 1_000_000, MemoryKeys: 1_000_000, HugeKeys: 10_000_000},
	true:  {Rounds: 1, Turn: 50 * time.Millisecond, Callers: 32, ManyCallers: 64, Keys: 200, RedisKeys: 2000, MemoryKeys: 2000, HugeKeys: 20_000},
}

// parse reads args. It returns errHelped if help was all that was wanted.
func parse(args []string, errs io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	chosen := f.String("rows", "", "`ids` of the rows to measure, separated by commas; all if left out")
	list := f.Bool("list", false, "list the rows and do nothing")
	f.BoolVar(&o.quick, "quick", false, "small sizes and one round")
	rounds := f.Int("rounds", 0, "`number` of rounds, 1 or more (default 5)")
	turn := f.Duration("time", 0, "`duration` of a contender's turn in each round (default 1s)")
	f.StringVar(&o.out, "out", "", "`directory` for benchmarks.md and benchmarks.svg; if left out, only the table of targets is written, to standard output")
	f.StringVar(&o.json, "json", "", "`file` for all figures of all rounds, in JSON")
	program := f.String("headgate", "", "`file` with headgate's program; if left out, it is built")
	var services []trial.Named
	f.Func("rls", "`name=host:port` of an Envoy rate limit service that is running; may be given several times", func(s string) error {
		n, err := service(s)
		services = append(services, n)
		return err
	})
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		_, _ = io.WriteString(errs, usage)
		f.SetOutput(errs)
		f.PrintDefaults()
		return o, errHelped
	} else if err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("%q is no flag", f.Arg(0))
	}
	if *list {
		for _, r := range rows() {
			_, _ = fmt.Fprintf(errs, "%-18s %s\n", r.ID, r.Title)
		}
		return o, errHelped
	}
	o.settings = sizes[o.quick]
	o.settings.Program, o.settings.RLS = *program, services
	return o, errors.Join(o.choose(*chosen), o.extent(f, *rounds, *turn), o.again(f))
}

// service reads name=host:port.
func service(s string) (trial.Named, error) {
	name, address, found := strings.Cut(s, "=")
	if _, _, err := net.SplitHostPort(address); !found || name == "" || err != nil {
		return trial.Named{}, errors.New("want name=host:port")
	}
	return trial.Named{Name: name, Addr: address}, nil
}

// choose takes the rows of some ids, in the order of the report.
func (o *options) choose(ids string) error {
	o.rows = rows()
	if ids == "" {
		return nil
	}
	wanted := strings.Split(ids, ",")
	for _, id := range wanted {
		if !slices.ContainsFunc(o.rows, func(r trial.Row) bool { return r.ID == id }) {
			return fmt.Errorf("-rows: there is no row %q (-list says which there are)", id)
		}
	}
	o.rows = slices.DeleteFunc(o.rows, func(r trial.Row) bool { return !slices.Contains(wanted, r.ID) })
	return nil
}

// extent takes rounds and time where they were given.
func (o *options) extent(f *flag.FlagSet, rounds int, turn time.Duration) error {
	var err error
	f.Visit(func(given *flag.Flag) {
		switch given.Name {
		case "rounds":
			o.settings.Rounds = rounds
		case "time":
			o.settings.Turn = turn
		}
	})
	if o.settings.Rounds < 1 {
		err = fmt.Errorf("-rounds %d, want 1 or more", rounds)
	}
	if o.settings.Turn < time.Millisecond {
		err = errors.Join(err, fmt.Errorf("-time %v, want 1ms or more", turn))
	}
	return err
}

// again makes the command, without what names places of this machine.
func (o *options) again(f *flag.FlagSet) error {
	o.command = "go run ./bench"
	f.Visit(func(given *flag.Flag) {
		switch given.Name {
		case "json", "headgate":
		case "out":
			o.command += " -out docs"
		case "quick":
			o.command += " -quick"
		case "rls":
			for _, n := range o.settings.RLS {
				o.command += " -rls " + n.Name + "=HOST:PORT"
			}
		default:
			o.command += fmt.Sprintf(" -%s %v", given.Name, given.Value)
		}
	})
	if o.command == "go run ./bench -out docs" {
		o.command = "make bench"
	}
	return nil
}
