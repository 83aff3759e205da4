package config

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/headgate/headgate"
	"go.yaml.in/yaml/v4"
)

// A decoder walks a file's nodes and collects what is wrong with them.
type decoder struct {
	file     string
	problems Problems
	keys     map[string]bool // every key that the schema knows on the way, such as "routes[].path"

	anonymousPlanLine int
	apiKeySeen        bool // identity.api_key stands in the file

	choices map[headgate.Limit]choice // of each limit that may be leased
}

// fault notes a problem.
func (d *decoder) fault(line int, format string, args ...any) {
	d.problems = append(d.problems, Problem{File: d.file, Line: line, Text: fmt.Sprintf(format, args...)})
}

// root returns the one document of data, or nil after noting why there is none.
func (d *decoder) root(data []byte) *yaml.Node {
	if !d.text(data) {
		return nil
	}
	loader, err := yaml.NewLoader(strings.NewReader(string(data)))
	if err != nil {
		d.fault(1, "%v", err)
		return nil
	}
	var doc, second yaml.Node
	if err := loader.Load(&doc); errors.Is(err, io.EOF) {
		d.fault(1, "the file is empty, want at least routes: and who may call them")
		return nil
	} else if err != nil {
		d.syntax(err)
		return nil
	}
	if err := loader.Load(&second); err == nil {
		d.fault(max(1, second.Line), "a second document begins, want one document in a file")
		return nil
	} else if !errors.Is(err, io.EOF) {
		d.syntax(err)
		return nil
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		d.fault(1, "the file is empty, want at least routes: and who may call them")
		return nil
	}
	return doc.Content[0]
}

// text says whether data is text at all: the parser knows no line for what is not.
func (d *decoder) text(data []byte) bool {
	line := 1
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		switch {
		case r == utf8.RuneError && size <= 1:
			d.fault(line, "byte %#x is not UTF-8 text, want a YAML file in UTF-8", data[0])
			return false
		case r < ' ' && r != '\n' && r != '\r' && r != '\t', r == 0x7f:
			d.fault(line, "control character %#x, want printable text", r)
			return false
		case r == '\n':
			line++
		}
		data = data[size:]
	}
	return true
}

// syntax notes an error of the YAML parser.
func (d *decoder) syntax(err error) {
	var le *yaml.LoadError
	if !errors.As(err, &le) {
		d.fault(1, "not YAML: %s", oneLine(err.Error()))
		return
	}
	d.fault(max(1, int(le.Mark.Line)), "not YAML: %s", oneLine(le.Message))
}

// oneLine keeps a text of others from breaking the rule of one line for each problem.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// A field is one key of a mapping.
type field struct {
	name    string
	example string // of a value, where the field is required; "" = it may be left out
	read    func(value *yaml.Node)
}

// object reads the mapping n at path, such as "routes[]": each key by its field.
func (d *decoder) object(n *yaml.Node, path string, fields ...field) {
	d.objectAs(n, path, path, fields...)
}

// objectAs is object where the schema calls the path otherwise: "plans.*" for "plans.free".
func (d *decoder) objectAs(n *yaml.Node, path, schema string, fields ...field) {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
		d.keys[strings.TrimPrefix(schema+"."+f.name, ".")] = true
	}
	found := make(map[string]bool)
	d.entries(n, path, func(key, value *yaml.Node) {
		for _, f := range fields {
			if f.name == key.Value {
				found[f.name] = true
				f.read(value)
				return
			}
		}
		d.fault(key.Line, "unknown key %s%s, want %s", quote(key.Value), within(path), nearest(key.Value, names))
	})
	if n.Kind != yaml.MappingNode {
		return
	}
	for _, f := range fields {
		if f.example != "" && !found[f.name] {
			d.fault(n.Line, "%s is missing%s, want for example %s: %s", f.name, within(path), f.name, f.example)
		}
	}
}

// entries calls each for the entries of the mapping n, and notes keys that come twice.
func (d *decoder) entries(n *yaml.Node, path string, each func(key, value *yaml.Node)) {
	if !d.kind(n, yaml.MappingNode, path, "a mapping of keys to values") {
		return
	}
	seen := make(map[string]int)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			d.fault(key.Line, "a key%s is %s, want a plain word", within(path), describe(key))
			continue
		}
		if first, twice := seen[key.Value]; twice {
			d.fault(key.Line, "key %s%s comes twice, first on line %d; want it once", quote(key.Value), within(path), first)
			continue
		}
		seen[key.Value] = key.Line
		each(key, value)
	}
}

// list calls each for the items of the sequence n.
func (d *decoder) list(n *yaml.Node, path, want string, each func(item *yaml.Node)) {
	if !d.kind(n, yaml.SequenceNode, path, want) {
		return
	}
	for _, item := range n.Content {
		each(item)
	}
}

// kind notes a node that is not of the kind wanted.
func (d *decoder) kind(n *yaml.Node, kind yaml.Kind, path, want string) bool {
	if n.Kind == kind {
		return true
	}
	d.fault(n.Line, "%s is %s, want %s", subject(path), describe(n), want)
	return false
}

// str reads a string. Other scalars are refused: what looks like a number to YAML may not come out as it was written.
func (d *decoder) str(n *yaml.Node, path, want string) (string, bool) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" {
		return n.Value, true
	}
	d.fault(n.Line, "%s is %s, want %s", subject(path), describe(n), want)
	return "", false
}

// boolean reads true or false.
func (d *decoder) boolean(n *yaml.Node, path string, to *bool) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" {
		d.fault(n.Line, "%s is %s, want true or false", subject(path), describe(n))
		return
	}
	*to = strings.EqualFold(n.Value, "true")
}

// duration reads a time above zero and at most limit.
func (d *decoder) duration(n *yaml.Node, path string, limit time.Duration, to *time.Duration) {
	d.durationFrom(n, path, fmt.Sprintf("a duration above 0 and at most %s, such as 50ms", limit), 1, limit, to)
}

// durationOrZero reads a time of at most limit.
func (d *decoder) durationOrZero(n *yaml.Node, path string, limit time.Duration, to *time.Duration) {
	d.durationFrom(n, path, fmt.Sprintf("a duration of 0s or more and at most %s, such as 5s", limit), 0, limit, to)
}

func (d *decoder) durationFrom(n *yaml.Node, path, want string, low, limit time.Duration, to *time.Duration) {
	s, ok := d.str(n, path, want)
	if !ok {
		return
	}
	v, err := time.ParseDuration(s)
	if err != nil || v < low || v > limit {
		d.fault(n.Line, "%s is %s, want %s", subject(path), quote(s), want)
		return
	}
	*to = v
}

// integer reads a whole number from low to high.
func (d *decoder) integer(n *yaml.Node, path string, low, high int, to *int) {
	v, err := strconv.Atoi(n.Value)
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || err != nil || v < low || v > high {
		d.fault(n.Line, "%s is %s, want a whole number from %d to %d", subject(path), describe(n), low, high)
		return
	}
	*to = v
}

// choice reads one of a few words, and returns its place among them.
func (d *decoder) choice(n *yaml.Node, path string, words ...string) (int, bool) {
	want := "one of " + strings.Join(words, ", ")
	s, ok := d.str(n, path, want)
	if !ok {
		return 0, false
	}
	for i, word := range words {
		if s == word {
			return i, true
		}
	}
	d.fault(n.Line, "%s is %s, want %s", subject(path), quote(s), want)
	return 0, false
}
