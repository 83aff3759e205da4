package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// An event is a line of go test -json; go doc test2json describes it.
type event struct {
	Action     string
	Package    string
	Test       string // "" for the package itself
	Output     string
	ImportPath string // of a package that is built
}

// A gate gathers what tests say until it is known whether it matters.
type gate struct {
	out    io.Writer
	said   map[string][]*saying // by package
	passed int
	failed []string
	skips  []string
}

// A saying is all that one test, or a package itself, has written.
type saying struct {
	test string
	text strings.Builder
}

// check reads events from in, shows on out what matters of them, and returns how many tests passed, or an error if not all did.
func check(in io.Reader, out io.Writer) (passed int, err error) {
	g := &gate{out: out, said: make(map[string][]*saying)}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if line != "" {
			g.line(line)
		}
		if err != nil {
			return g.passed, g.verdict()
		}
	}
}

func (g *gate) line(line string) {
	var e event
	if json.Unmarshal([]byte(line), &e) != nil || e.Action == "" {
		_, _ = io.WriteString(g.out, line) // of the go command itself
		return
	}
	switch e.Action {
	case "output":
		g.sayingOf(e).text.WriteString(e.Output)
	case "build-output":
		_, _ = io.WriteString(g.out, e.Output)
	case "pass", "fail", "skip":
		if e.Test != "" {
			g.test(e)
		} else {
			g.pkg(e)
		}
	}
}

func (g *gate) sayingOf(e event) *saying {
	for _, s := range g.said[e.Package] {
		if s.test == e.Test {
			return s
		}
	}
	s := &saying{test: e.Test}
	g.said[e.Package] = append(g.said[e.Package], s)
	return s
}

// test takes note of the end of a test. What one that passed has said is forgotten.
func (g *gate) test(e event) {
	name := e.Package + " " + e.Test
	switch e.Action {
	case "pass":
		g.passed++
		g.said[e.Package] = slices.DeleteFunc(g.said[e.Package], func(s *saying) bool { return s.test == e.Test })
	case "skip":
		g.skips = append(g.skips, name)
	case "fail":
		g.failed = append(g.failed, name)
	}
}

// pkg shows the end of a package: its closing line when it passed, everything when it failed. One without tests is not worth a line.
func (g *gate) pkg(e event) {
	said := g.said[e.Package]
	delete(g.said, e.Package)
	if e.Action == "fail" {
		g.failed = append(g.failed, e.Package)
	}
	for _, s := range said {
		for line := range strings.Lines(s.text.String()) {
			if e.Action == "fail" || e.Action == "pass" && s.test == "" && strings.HasPrefix(line, "ok  \t") {
				_, _ = io.WriteString(g.out, line)
			}
		}
	}
}

// verdict is an error unless tests ran and all of them passed.
func (g *gate) verdict() error {
	var errs []error
	for pkg, said := range g.said { // left by a go command that was cut short
		errs = append(errs, fmt.Errorf("%s did not come to an end", pkg))
		for _, s := range said {
			_, _ = io.WriteString(g.out, s.text.String())
		}
	}
	for _, name := range g.failed {
		errs = append(errs, fmt.Errorf("failed: %s", name))
	}
	for _, name := range g.skips {
		errs = append(errs, fmt.Errorf("skipped: %s: a test that does not run proves nothing", name))
	}
	if g.passed == 0 && len(errs) == 0 {
		errs = append(errs, errors.New("no test ran"))
	}
	return errors.Join(errs...)
}
