package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/headgate/headgate/cmd/headgate/internal/config"
)

type checkCmd struct {
	Files []string `arg:"" name:"file" help:"Configuration files."`
	JSON  bool     `help:"Print the result as JSON on stdout."`
}

// Help implements [kong.HelpProvider].
func (*checkCmd) Help() string {
	return `Reads files as serve does, and reports all that is wrong in each: one line a problem, as FILE:LINE: what is wrong and what would be
right. A file without problems is reported ok. docs/config.md in the repository describes every key.

Exit codes: 0 all files are right, 2 some are not.

Examples:

  headgate check headgate.yaml
  headgate check --json staging.yaml production.yaml | jq .`
}

// fileResult is what check found in one file.
type fileResult struct {
	File     string          `json:"file"`
	OK       bool            `json:"ok"`
	Problems config.Problems `json:"problems,omitempty"`
}

// Run implements the subcommand.
func (c *checkCmd) Run(out output) error {
	results := make([]fileResult, len(c.Files))
	failed := false
	for i, file := range c.Files {
		results[i] = fileResult{File: file, OK: true}
		_, err := config.Load(file)
		if err == nil {
			continue
		}
		if !errors.As(err, &results[i].Problems) {
			return err
		}
		results[i].OK, failed = false, true
	}
	if err := c.print(out, results); err != nil {
		return err
	}
	if failed {
		return &failure{code: exitUsage}
	}
	return nil
}

func (c *checkCmd) print(out output, results []fileResult) error {
	if c.JSON {
		return writeJSON(out.stdout, results)
	}
	for _, r := range results {
		if r.OK {
			if _, err := fmt.Fprintf(out.stdout, "%s: ok\n", r.File); err != nil {
				return err
			}
			continue
		}
		if _, err := fmt.Fprintln(out.stderr, r.Problems.Error()); err != nil {
			return err
		}
	}
	return nil
}

// writeJSON prints v for programs to read.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
