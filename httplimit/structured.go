package httplimit

import "strconv"

// These write the parts of RFC 9651, Structured Field Values, that the fields are made of.

// maxInteger is the largest Integer of a structured field: 15 digits.
const maxInteger int64 = 999_999_999_999_999

// appendInteger writes n, brought into 0 to maxInteger.
func appendInteger(b []byte, n int64) []byte {
	return strconv.AppendInt(b, min(max(n, 0), maxInteger), 10)
}

// appendString writes s as a String. That holds printable ASCII alone; any other byte becomes a percent sign and two hex digits.
func appendString[T string | []byte](b []byte, s T) []byte {
	const hex = "0123456789ABCDEF"
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ' || c > '~':
			b = append(b, '%', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
