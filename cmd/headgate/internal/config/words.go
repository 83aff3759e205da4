package config

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// describe says what a node is, for "X is ..., want ...".
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias (write the value out: aliases are not read)"
	case yaml.ScalarNode:
	default:
		return "nothing"
	}
	switch n.ShortTag() {
	case "!!null":
		return "empty"
	case "!!str":
		return quote(n.Value)
	case "!!bool":
		return "the boolean " + quote(n.Value)
	case "!!int", "!!float":
		return "the number " + quote(n.Value)
	}
	return "a value of type " + quote(n.ShortTag())
}

// quote quotes what stands in a file, cut to a length that a line can bear.
func quote(s string) string {
	const most = 80
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return strconv.Quote(s)
}

// subject is the path of a value, or the file.
func subject(path string) string {
	if path == "" {
		return "the file"
	}
	return path
}

// within is " in PATH", or nothing at the top.
func within(path string) string {
	if path == "" {
		return ""
	}
	return " in " + path
}

// nearest names what is likely meant by word, else everything that it could be.
func nearest(word string, names []string) string {
	best, least := "", 3
	for _, name := range names {
		if n := distance(strings.ToLower(word), name); n < least {
			best, least = name, n
		}
	}
	if best != "" {
		return best
	}
	if len(names) > 1 {
		return "one of " + strings.Join(names, ", ")
	}
	return strings.Join(names, ", ")
}

// distance is the number of single-byte edits that make b of a. Words of more than 40 bytes are far from everything.
func distance(a, b string) int {
	const long = 40
	if len(a) > long || len(b) > long {
		return long
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
