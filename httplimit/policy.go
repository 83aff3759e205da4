package httplimit

import (
	"bytes"
	"math/bits"
	"slices"
	"strconv"
	"time"

	"github.com/headgate/headgate"
)

// policies are the limits of a request, each with a name that no other has. They are not changed once made.
type policies struct {
	limits []headgate.Limit // no two are the same
	field  string           // the value of RateLimit-Policy
	names  []span           // where the name of each limit lies in field, with its quotes
}

// A span is a part of a string.
type span struct{ from, to int }

// describe names limits, in their order, and writes the field. It keeps the slice.
func describe(limits []headgate.Limit) *policies {
	p := &policies{limits: limits, names: make([]span, 0, len(limits))}
	var buf [256]byte
	b := buf[:0]
	for i, l := range limits {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = p.appendName(b, l)
		b = appendInteger(append(b, ";q="...), l.Capacity())
		b = appendInteger(append(b, ";w="...), window(l))
	}
	p.field = string(b)
	return p
}

// appendName writes the limit's name as a structured field's string: its own or its text form, with a number where another policy
// of this list already has that name.
func (p *policies) appendName(b []byte, l headgate.Limit) []byte {
	from := len(b)
	if l.Name != "" {
		b = appendString(b, l.Name)
	} else {
		var text [64]byte
		b = appendString(b, l.AppendID(text[:0])[1:]) // the ID of a limit without a name is "=" and the text form
	}
	base := len(b) - 1
	for n := int64(2); p.taken(b, b[from:]); n++ {
		b = append(strconv.AppendInt(append(b[:base], '-'), n, 10), '"')
	}
	p.names = append(p.names, span{from, len(b)})
	return b
}

func (p *policies) taken(field, name []byte) bool {
	for _, s := range p.names {
		if bytes.Equal(field[s.from:s.to], name) {
			return true
		}
	}
	return false
}

// name returns the name of the limit as it stands in the field; a structured field's string is a JSON string too. It returns "" for a
// limit that is not in the list.
func (p *policies) name(l headgate.Limit) string {
	i := slices.Index(p.limits, l)
	if i < 0 {
		return ""
	}
	return p.field[p.names[i].from:p.names[i].to]
}

// cover says whether d is about exactly these limits, in this order: those that appendLimits would list.
func (p *policies) cover(d *headgate.Decision) bool {
	met := 0 // of p.limits, in d
	for i := range d.States {
		switch l := &d.States[i].Limit; {
		case met < len(p.limits) && p.limits[met] == *l:
			met++
		case !slices.Contains(p.limits[:met], *l):
			return false
		}
	}
	if met < len(p.limits) && p.limits[met] == d.Limit {
		return met+1 == len(p.limits)
	}
	return met == len(p.limits) && slices.Contains(p.limits, d.Limit)
}

// appendLimits appends the limits of d that are not yet in the list.
func appendLimits(limits []headgate.Limit, d *headgate.Decision) []headgate.Limit {
	for i := range d.States {
		if l := d.States[i].Limit; !slices.Contains(limits, l) {
			limits = append(limits, l)
		}
	}
	if !slices.Contains(limits, d.Limit) {
		limits = append(limits, d.Limit)
	}
	return limits
}

// window returns the seconds in which the capacity of l is granted anew, rounded up, at least 1: its Period, or for a bucket whose
// Burst is not its Count, the time it takes to fill. So capacity per window is never more than the rate of the limit.
func window(l headgate.Limit) int64 {
	if l.Algorithm != headgate.TokenBucket || l.Burst == 0 || l.Count == 0 {
		return max(1, seconds(l.Period))
	}
	hi, lo := bits.Mul64(uint64(l.Burst), uint64(l.Period))
	if hi >= uint64(l.Count) {
		return maxInteger
	}
	fill, rest := bits.Div64(hi, lo, uint64(l.Count))
	if rest > 0 {
		fill++
	}
	whole := fill / uint64(time.Second)
	if fill%uint64(time.Second) > 0 {
		whole++
	}
	return max(1, int64(whole))
}

// seconds rounds up, and takes what is negative for 0.
func seconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return max(0, s)
}
