package httplimit

import "strings"

// These read the Forwarded field (RFC 7239) from its end, since that is the part which the nearest proxy wrote: what a caller sent in
// front of it, such as a quote that is never closed, cannot change how it reads.

// cutForwarded takes the last element off a list.
func cutForwarded(list string) (rest, element string) {
	quoted := false
	for i := len(list) - 1; i >= 0; i-- {
		switch c := list[i]; {
		case c == '"' && !(quoted && escaped(list[:i])):
			quoted = !quoted
		case c == ',' && !quoted:
			return list[:i], list[i+1:]
		}
	}
	return "", list
}

// escaped says whether a byte that follows before is escaped: an odd number of backslashes stands there.
func escaped(before string) bool {
	return (len(before)-len(strings.TrimRight(before, `\`)))%2 == 1
}

// forwardedFor returns the value of "for" in an element; false if the element is malformed, has none, or has two.
func forwardedFor(element string) (node string, ok bool) {
	for element != "" {
		name, value, rest, well := cutPair(element)
		if !well {
			return "", false
		}
		element = rest
		if strings.EqualFold(name, "for") {
			if ok {
				return "", false
			}
			node, ok = value, true
		}
	}
	return node, ok
}

// cutPair takes the first name=value off an element. The value comes without its quotes; escapes in it stay, since nothing that is an
// address has any. A pair may be empty.
func cutPair(s string) (name, value, rest string, ok bool) {
	i := strings.IndexAny(s, "=;")
	if i < 0 || s[i] == ';' {
		if i < 0 {
			i = len(s)
		}
		return "", "", s[min(i+1, len(s)):], trim(s[:i]) == ""
	}
	name, s = trim(s[:i]), trim(s[i+1:])
	if quoted, is := strings.CutPrefix(s, `"`); is {
		end := closingQuote(quoted)
		if end < 0 {
			return "", "", "", false
		}
		value, s = quoted[:end], trim(quoted[end+1:])
		if s != "" && s[0] != ';' {
			return "", "", "", false
		}
		return name, value, strings.TrimPrefix(s, ";"), name != ""
	}
	value, rest, _ = strings.Cut(s, ";")
	return name, trim(value), rest, name != "" && !strings.Contains(value, `"`)
}

// closingQuote returns where the first quote that is not escaped stands, or -1.
func closingQuote(s string) int {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}
