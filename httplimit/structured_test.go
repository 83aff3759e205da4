package httplimit_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// A member is one item of a structured field's List.
type member struct {
	name   string
	params map[string]int64
}

// parseList is a strict parser of what the fields are made of (RFC 9651): a List of Strings with Integer parameters, serialised in the
// one canonical way.
func parseList(s string) ([]member, error) {
	var list []member
	for {
		m := member{params: map[string]int64{}}
		var err error
		if m.name, s, err = parseString(s); err != nil {
			return nil, err
		}
		for strings.HasPrefix(s, ";") {
			var key string
			var n int64
			if key, n, s, err = parseParameter(s[1:]); err != nil {
				return nil, err
			}
			if _, twice := m.params[key]; twice {
				return nil, fmt.Errorf("parameter %q twice", key)
			}
			m.params[key] = n
		}
		list = append(list, m)
		if s == "" {
			return list, nil
		}
		var ok bool
		if s, ok = strings.CutPrefix(s, ", "); !ok {
			return nil, fmt.Errorf("%q after a member", s)
		}
	}
}

func parseString(s string) (text, rest string, err error) {
	if s == "" || s[0] != '"' {
		return "", "", fmt.Errorf("%q begins no string", s)
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), s[i+1:], nil
		case c == '\\':
			if i++; i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", "", fmt.Errorf("bad escape in %q", s)
			}
			b.WriteByte(s[i])
		case c < 0x20 || c > 0x7e:
			return "", "", fmt.Errorf("byte %#x in %q", c, s)
		default:
			b.WriteByte(c)
		}
	}
	return "", "", fmt.Errorf("no end of string in %q", s)
}

func parseParameter(s string) (key string, n int64, rest string, err error) {
	i := strings.IndexByte(s, '=')
	if i < 1 || strings.Trim(s[:i], "abcdefghijklmnopqrstuvwxyz") != "" {
		return "", 0, "", fmt.Errorf("no parameter in %q", s)
	}
	key, s = s[:i], s[i+1:]
	end := len(s) - len(strings.TrimLeft(s, "0123456789"))
	if end == 0 || end > 15 || end > 1 && s[0] == '0' {
		return "", 0, "", fmt.Errorf("no integer in %q", s)
	}
	n, err = strconv.ParseInt(s[:end], 10, 64)
	return key, n, s[end:], err
}

// TestParseList shows that the parser of these tests is strict.
func TestParseList(t *testing.T) {
	for _, s := range []string{`"a"`, `"a";q=1;w=60`, `"a\"\\";q=0, "b";q=999999999999999`} {
		if _, err := parseList(s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	for _, s := range []string{``, `a`, `"a`, `"a\b"`, "\"\x7f\"", `"a";q`, `"a";q=-1`, `"a";q=01`, `"a";q=1000000000000000`, `"a";q=1;q=1`, `"a" , "b"`, `"a",`} {
		if list, err := parseList(s); err == nil {
			t.Errorf("%s parses as %v", s, list)
		}
	}
}
