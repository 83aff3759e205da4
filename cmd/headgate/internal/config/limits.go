package config

import (
	"errors"
	"strings"

	"github.com/headgate/headgate"
	"go.yaml.in/yaml/v4"
)

// limits reads a list of limits, each a text or {limit, name, lease}. owner begins the names of those that have none of their own, so that
// a limit keeps its name, and with it what was used, when its count or burst changes: "free/s" for "10/s burst 20" of the plan free.
func (d *decoder) limits(n *yaml.Node, path, owner string) []headgate.Limit {
	var out []headgate.Limit
	lines := make(map[string]int)
	d.list(n, path, `a list of limits such as ["100/s"]`, func(item *yaml.Node) {
		l, ok := d.limit(item, path+"[]", owner)
		if !ok {
			return
		}
		if first, taken := lines[l.Name]; taken {
			d.fault(item.Line, `%s has two limits of the name %s, the other on line %d; want names of their own: {name: ..., limit: %s}`,
				path, quote(l.Name), first, quote(l.String()))
			return
		}
		lines[l.Name] = item.Line
		out = append(out, l)
	})
	if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		d.fault(n.Line, `%s is an empty list, want at least one limit such as "100/s", or the key left out`, path)
	}
	return out
}

// limit reads one limit. It is named in any case.
func (d *decoder) limit(n *yaml.Node, path, owner string) (headgate.Limit, bool) {
	const want = `a limit such as "100/s" or {name: burst, limit: "100/s"}`
	if n.Kind != yaml.MappingNode {
		text, ok := d.str(n, path, want)
		if !ok {
			return headgate.Limit{}, false
		}
		l, ok := d.parseLimit(n, path, text, "", owner)
		if ok {
			d.choose(n, path, l, false)
		}
		return l, ok
	}
	var text, name, named, leased = "", "", false, false
	textNode, before := n, len(d.problems)
	d.objectAs(n, path, "LIMIT",
		field{name: "name", read: func(v *yaml.Node) { name, _ = d.str(v, path+".name", "a name such as burst"); named = true }},
		field{name: "limit", example: `"100/s"`, read: func(v *yaml.Node) { text, _ = d.str(v, path+".limit", `a limit such as "100/s"`); textNode = v }},
		field{name: "lease", read: func(v *yaml.Node) { d.boolean(v, path+".lease", &leased) }})
	if len(d.problems) > before {
		return headgate.Limit{}, false
	}
	if named && name == "" {
		d.fault(n.Line, "%s.name is empty, want a name such as burst, or the key left out", path)
		return headgate.Limit{}, false
	}
	l, ok := d.parseLimit(textNode, path, text, name, owner)
	if ok {
		d.choose(textNode, path, l, leased)
	}
	return l, ok
}

func (d *decoder) parseLimit(n *yaml.Node, path, text, name, owner string) (headgate.Limit, bool) {
	l, err := headgate.ParseLimit(text)
	if err != nil {
		d.fault(n.Line, "%s: %s", path, reason(err))
		return headgate.Limit{}, false
	}
	if l.Name = name; name == "" {
		l.Name = owner + "/" + period(l)
	}
	if err := l.Validate(); err != nil {
		d.fault(n.Line, "%s: %s", path, reason(err))
		return headgate.Limit{}, false
	}
	return l, true
}

// reason is err without the words that say that it is one of this library.
func reason(err error) string {
	text := err.Error()
	if errors.Is(err, headgate.ErrInvalidLimit) {
		text = strings.TrimPrefix(text, "headgate: ")
	}
	return oneLine(text)
}

// period is the period of l in the text form: the "s" of "100/s".
func period(l headgate.Limit) string {
	_, text, _ := strings.Cut(headgate.Limit{Count: l.Count, Period: l.Period}.String(), "/")
	return text
}
