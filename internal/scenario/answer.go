package scenario

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate"
)

// want reads what follows the arrow.
func (p *parser) want(step *Step, words []word) error {
	if len(words) == 0 {
		return fmt.Errorf("nothing after ->")
	}
	first := words[0].text
	switch {
	case step.Every > 0:
		n, err := strconv.Atoi(first)
		if err != nil || len(words) != 2 || words[1].text != "allowed" {
			return fmt.Errorf(`want "-> N allowed"`)
		}
		step.Want.Total = n
		return nil
	case first == "allowed" || first == "denied":
		allowed := first == "allowed"
		step.Want.Allowed = &allowed
		return p.details(step, words[1:])
	}
	for _, w := range words {
		if w.text != "0" && w.text != "1" {
			return fmt.Errorf("answer %q: want allowed, denied, or a row of 1 and 0", w.text)
		}
		step.Want.Row = append(step.Want.Row, w.text == "1")
	}
	return nil
}

// details reads "remaining N retry D reset D by LIMIT each N/D/D ...", any of them, each once.
func (p *parser) details(step *Step, words []word) error {
	seen := map[string]bool{}
	for len(words) > 0 {
		what := words[0].text
		if seen[what] || len(words) < 2 {
			return fmt.Errorf("want %q once, and what it is", what)
		}
		seen[what] = true
		if what == "each" {
			return step.Want.each(words[1:], len(step.Charges))
		}
		if err := p.detail(&step.Want, what, words[1].text); err != nil {
			return err
		}
		words = words[2:]
	}
	return nil
}

func (p *parser) detail(w *Want, what, value string) error {
	switch what {
	case "remaining":
		n, err := strconv.ParseInt(value, 10, 64)
		w.Left = &n
		return err
	case "retry":
		d, err := waitOf(value)
		w.Retry = &d
		return err
	case "reset":
		d, err := duration(value)
		w.Reset = &d
		return err
	case "by":
		l, ok := p.limits[value]
		if !ok {
			return fmt.Errorf("no limit %q", value)
		}
		w.By = &l
		return nil
	}
	return fmt.Errorf("unknown word %q in the answer", what)
}

func waitOf(s string) (time.Duration, error) {
	if s == "never" {
		return headgate.Never, nil
	}
	return duration(s)
}

func (w *Want) each(words []word, charges int) error {
	if len(words) != charges || charges < 2 {
		return fmt.Errorf("each: %d states for %d charges", len(words), charges)
	}
	for _, word := range words {
		parts := strings.Split(word.text, "/")
		if len(parts) != 3 {
			return fmt.Errorf("state %q: want LEFT/RETRY/RESET", word.text)
		}
		left, err := strconv.ParseInt(parts[0], 10, 64)
		if err != nil {
			return fmt.Errorf("state %q: want LEFT/RETRY/RESET", word.text)
		}
		retry, err := waitOf(parts[1])
		if err != nil {
			return err
		}
		reset, err := duration(parts[2])
		if err != nil {
			return err
		}
		w.Each = append(w.Each, State{left, retry, reset})
	}
	return nil
}

// A word of a line, or what was quoted.
type word struct {
	text   string
	quoted bool
}

// split cuts a line into words. A comma is a word of its own; a # at the beginning of a word begins a comment.
func split(line string) ([]word, error) {
	var words []word
	for {
		line = strings.TrimLeft(line, " \t\r")
		switch {
		case line == "" || line[0] == '#':
			return words, nil
		case line[0] == ',':
			words, line = append(words, word{text: ","}), line[1:]
		case line[0] == '"':
			prefix, err := strconv.QuotedPrefix(line)
			if err != nil {
				return nil, fmt.Errorf("a quoted string does not end, or is none of Go's")
			}
			text, err := strconv.Unquote(prefix)
			if err != nil {
				return nil, err
			}
			words, line = append(words, word{text, true}), line[len(prefix):]
		default:
			end := strings.IndexAny(line, " \t\r,\"")
			if end < 0 {
				end = len(line)
			}
			words, line = append(words, word{text: line[:end]}), line[end:]
		}
	}
}
