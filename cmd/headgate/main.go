// Command headgate is a rate limiting gateway and the tools around it. Run headgate --help.
package main

import (
	"os"

	"github.com/headgate/headgate/cmd/headgate/internal/cli"
)

func main() { os.Exit(cli.Run(os.Args[1:], os.Stdout, os.Stderr)) }
