package outbound

import "strings"

// These read as much of RFC 9651, Structured Field Values, as the fields need: lists and dictionaries of items with parameters. All types
// are recognised, since a field with one mistake anywhere is to be ignored as a whole; only integers keep their value.

// An item is one member of a list or of a dictionary.
type item struct {
	key    string // in a dictionary
	value  bare
	params map[string]bare
}

type bare struct {
	integer int64
	isInt   bool
	isName  bool // a String or a Token
}

type parser struct{ rest string }

// parseList reads a List. Inner lists, which no field has, are refused.
func parseList(s string) ([]item, bool) {
	p := parser{strings.Trim(s, " ")}
	return p.members(func(it *item) bool { return p.bare(&it.value) && p.parameters(it) })
}

// parseDictionary reads a Dictionary.
func parseDictionary(s string) ([]item, bool) {
	p := parser{strings.Trim(s, " ")}
	return p.members(func(it *item) bool {
		var ok bool
		if it.key, ok = p.key(); !ok {
			return false
		}
		if p.skip('=') && !p.bare(&it.value) {
			return false
		}
		return p.parameters(it)
	})
}

// members reads what stands between commas: at least one member, and none after the last comma.
func (p *parser) members(member func(*item) bool) ([]item, bool) {
	var list []item
	for {
		var it item
		if !member(&it) {
			return nil, false
		}
		list = append(list, it)
		p.blank(" \t")
		if p.rest == "" {
			return list, true
		}
		if !p.skip(',') {
			return nil, false
		}
		p.blank(" \t")
	}
}

func (p *parser) parameters(it *item) bool {
	for p.skip(';') {
		p.blank(" ")
		key, ok := p.key()
		if !ok {
			return false
		}
		var v bare
		if p.skip('=') && !p.bare(&v) {
			return false
		}
		if it.params == nil {
			it.params = make(map[string]bare)
		}
		it.params[key] = v
	}
	return true
}

func (p *parser) blank(set string) { p.rest = strings.TrimLeft(p.rest, set) }

func (p *parser) skip(c byte) bool {
	if p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// span cuts off the longest beginning of which each byte is in the set.
func (p *parser) span(in func(c byte) bool) string {
	n := 0
	for n < len(p.rest) && in(p.rest[n]) {
		n++
	}
	s := p.rest[:n]
	p.rest = p.rest[n:]
	return s
}

func lower(c byte) bool { return c >= 'a' && c <= 'z' }
func digit(c byte) bool { return c >= '0' && c <= '9' }
func alpha(c byte) bool { return lower(c) || c >= 'A' && c <= 'Z' }

func (p *parser) key() (string, bool) {
	if p.rest == "" || !lower(p.rest[0]) && p.rest[0] != '*' {
		return "", false
	}
	return p.span(func(c byte) bool { return lower(c) || digit(c) || strings.IndexByte("_-.*", c) >= 0 }), true
}

// bare reads a bare item of any type.
func (p *parser) bare(v *bare) bool {
	if p.rest == "" {
		return false
	}
	switch c := p.rest[0]; {
	case c == '"':
		v.isName = true
		p.rest = p.rest[1:]
		return p.quoted()
	case c == '%': // a display string
		p.rest = p.rest[1:]
		return p.skip('"') && p.quoted()
	case c == '-' || digit(c):
		return p.number(v)
	case c == '@': // a date
		p.rest = p.rest[1:]
		var date bare
		return p.number(&date) && date.isInt
	case c == ':':
		p.rest = p.rest[1:]
		p.span(func(c byte) bool { return alpha(c) || digit(c) || c == '+' || c == '/' || c == '=' })
		return p.skip(':')
	case c == '?':
		p.rest = p.rest[1:]
		return p.skip('0') || p.skip('1')
	case alpha(c) || c == '*':
		v.isName = true
		p.span(func(c byte) bool { return alpha(c) || digit(c) || strings.IndexByte("!#$%&'*+-.^_`|~:/", c) >= 0 })
		return true
	}
	return false
}

// quoted reads a string up to its closing quote.
func (p *parser) quoted() bool {
	for i := 0; i < len(p.rest); i++ {
		switch c := p.rest[i]; {
		case c == '"':
			p.rest = p.rest[i+1:]
			return true
		case c == '\\':
			if i++; i == len(p.rest) || p.rest[i] != '"' && p.rest[i] != '\\' {
				return false
			}
		case c < ' ' || c > '~':
			return false
		}
	}
	return false
}

// number reads an Integer of at most 15 digits or a Decimal of at most 12 and 3.
func (p *parser) number(v *bare) bool {
	negative := p.skip('-')
	whole := p.span(digit)
	if whole == "" || len(whole) > 15 {
		return false
	}
	if p.skip('.') {
		part := p.span(digit)
		return len(whole) <= 12 && part != "" && len(part) <= 3
	}
	for i := range len(whole) {
		v.integer = v.integer*10 + int64(whole[i]-'0')
	}
	if negative {
		v.integer = -v.integer
	}
	v.isInt = true
	return true
}
