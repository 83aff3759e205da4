package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

type versionCmd struct {
	JSON bool `help:"Print the result as JSON."`
}

// Help implements [kong.HelpProvider].
func (*versionCmd) Help() string {
	return `Prints the version, the revision it was built from, and the Go release and platform it was built with.

Examples:

  headgate version
  headgate version --json | jq -r .version`
}

// build is what the linker recorded.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"` // built from a tree with changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func readBuild() build {
	b := build{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// Run implements the subcommand.
func (c *versionCmd) Run(out output) error {
	b := readBuild()
	if c.JSON {
		return writeJSON(out.stdout, b)
	}
	text := "headgate " + b.Version
	if b.Revision != "" {
		text += " " + b.Revision
	}
	if b.Modified {
		text += " (modified)"
	}
	_, err := fmt.Fprintf(out.stdout, "%s %s %s\n", text, b.Go, b.Platform)
	return err
}
