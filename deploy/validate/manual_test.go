package validate_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// docs/operations.md has a row for every series that a gateway serves, and for no other: | `name` | type | labels | meaning |.
func TestEverySeriesIsExplainedAndNoOther(t *testing.T) {
	text, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		kind   string
		labels []string
	}
	rows := make(map[string]row)
	for _, m := range regexp.MustCompile("(?m)^\\| `(headgate_[a-z_]+)` \\| (\\w+) \\|([^|]*)\\|").FindAllStringSubmatch(string(text), -1) {
		var names []string
		for _, l := range regexp.MustCompile("`([a-z]+)`").FindAllStringSubmatch(m[3], -1) {
			names = append(names, l[1])
		}
		slices.Sort(names)
		rows[m[1]] = row{m[2], names}
	}
	page := served(t)
	labels := make(map[string][]string)
	for _, s := range page.series {
		var names []string
		for name := range s.labels {
			if name != "le" {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		labels[page.family(s.name)] = names
	}
	for name, kind := range page.types {
		if !strings.HasPrefix(name, "headgate_") {
			continue
		}
		r, ok := rows[name]
		switch {
		case !ok:
			t.Errorf("%s is not in docs/operations.md", name)
		case r.kind != kind || !slices.Equal(r.labels, labels[name]):
			t.Errorf("docs/operations.md calls %s a %s with labels %q, it is a %s with %q", name, r.kind, r.labels, kind, labels[name])
		}
	}
	for name := range rows {
		if page.types[name] == "" {
			t.Errorf("docs/operations.md has %s, which no gateway serves", name)
		}
	}
}
