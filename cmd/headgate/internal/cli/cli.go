// Package cli is the command line of the program: one file for each subcommand. Nothing in it ends the process: Run returns the exit
// code, and main passes it on.
package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
)

// Exit codes of all subcommands. Only take has exitUndecided, and its exitFailed says that the request was denied.
const (
	exitDone      = 0
	exitFailed    = 1
	exitUsage     = 2
	exitUndecided = 3
)

// grammar is the command line.
type grammar struct {
	Serve   serveCmd   `cmd:"" help:"Run the gateway; without a file, a demo that needs nothing else."`
	Check   checkCmd   `cmd:"" help:"Say what is wrong in configuration files."`
	Take    takeCmd    `cmd:"" help:"Make one decision from a shell."`
	Keygen  keygenCmd  `cmd:"" help:"Make an API key for a tenant."`
	Bench   benchCmd   `cmd:"" help:"Put load on a Redis or a gateway, and see whether its limit holds."`
	Version versionCmd `cmd:"" help:"Print the version."`
}

const description = `Headgate is a rate limiting gateway: a fleet of them holds each tenant to one budget.

Examples:

  headgate serve                          # a demo, with the requests to try
  headgate serve --config headgate.yaml   # the gateway
  headgate check headgate.yaml            # what is wrong in the file, line by line

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.`

// output is where the subcommands write.
type output struct{ stdout, stderr io.Writer }

// A failure is an error that chooses the exit code. Text may have several lines; "" = all is said.
type failure struct {
	code int
	text string
}

func (f *failure) Error() string { return f.text }

func usageError(format string, args ...any) error {
	return &failure{code: exitUsage, text: fmt.Sprintf(format, args...)}
}

// wrongConfig is usageError for what a file says.
func wrongConfig(format string, args ...any) error {
	return usageError("the configuration is not right\n"+format, args...)
}

// Run runs the program with args, which do not hold its name, and returns its exit code.
func Run(args []string, stdout, stderr io.Writer) int {
	var g grammar
	helped := false
	parser, err := kong.New(&g, kong.Name("headgate"), kong.Description(description), kong.Writers(stdout, stderr), kong.Vars{"redis_forms": config.RedisForms},
		kong.Exit(func(int) { helped = true }), kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 110}))
	if err != nil {
		return report(stderr, err)
	}
	ctx, err := parser.Parse(args)
	if helped {
		return exitDone
	}
	if err != nil {
		return report(stderr, usageError("%v; headgate --help and headgate COMMAND --help say what is right", err))
	}
	return report(stderr, ctx.Run(output{stdout, stderr}))
}

// report says what err is and returns its exit code.
func report(stderr io.Writer, err error) int {
	if err == nil {
		return exitDone
	}
	code := exitFailed
	var f *failure
	if errors.As(err, &f) {
		code = f.code
	}
	if text := strings.TrimPrefix(err.Error(), "headgate: "); text != "" { // the library's errors begin as ours do
		// What cannot be written cannot be reported either.
		_, _ = fmt.Fprintf(stderr, "headgate: %s\n", text)
	}
	return code
}
