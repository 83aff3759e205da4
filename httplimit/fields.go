package httplimit

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate"
)

// Fields chooses the response fields that tell callers what they have left, as a set of dialects: Draft11 | XRateLimit sends both.
// All of them describe the binding limit of the decision. Limit is its capacity (Burst or Count), remaining its whole tokens left, and
// reset the seconds, rounded up, until a denied request may be sent again, or after an allowed one until the limit is as if never used.
type Fields uint8

const (
	// Draft11 sends RateLimit and RateLimit-Policy of draft-ietf-httpapi-ratelimit-headers-11, the default:
	//
	//	RateLimit-Policy: "burst";q=20;w=2, "daily";q=1000;w=86400
	//	RateLimit: "burst";r=12;t=1
	//
	// The policies are those of all limits of the request. q is the capacity and w the seconds in which it is granted anew: the Period, or
	// the time that an empty bucket with a Burst takes to fill. t is left out where no wait would do.
	Draft11 Fields = 1 << iota
	// Draft7 sends "RateLimit: limit=20, remaining=12, reset=1" and "RateLimit-Policy: 20;w=2". Not with Draft11.
	Draft7
	// Draft6 sends RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset, in seconds from now.
	Draft6
	// XRateLimit sends X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset, in seconds from now.
	XRateLimit
	// XRateLimitEpoch is XRateLimit with a reset in seconds since the Unix epoch, by the store's clock. Not with XRateLimit.
	XRateLimitEpoch
	// NoFields sends none. Not with others. Retry-After is no part of this choice: a denial always has it, unless no wait would do.
	NoFields
)

// fieldsNames are the names of the dialects, in the order of the constants.
var fieldsNames = [...]string{"draft-11", "draft-7", "draft-6", "x-ratelimit", "x-ratelimit-epoch", "none"}

// String returns the names that [ParseFields] reads, such as "draft-11 x-ratelimit"; "" for 0.
func (f Fields) String() string {
	var names []string
	for i, name := range fieldsNames {
		if f&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if rest := f >> len(fieldsNames) << len(fieldsNames); rest != 0 {
		names = append(names, "fields("+strconv.Itoa(int(rest))+")")
	}
	return strings.Join(names, " ")
}

// ParseFields reads names of dialects, separated by white space: draft-11, draft-7, draft-6, x-ratelimit, x-ratelimit-epoch, none. ""
// is 0, the default. Errors, also about dialects that exclude each other, match [headgate.ErrInvalidConfig].
func ParseFields(s string) (Fields, error) {
	var f Fields
next:
	for word := range strings.FieldsSeq(s) {
		for i, name := range fieldsNames {
			if word == name {
				f |= 1 << i
				continue next
			}
		}
		return 0, invalid("fields %q, want some of %s", word, strings.Join(fieldsNames[:], ", "))
	}
	return f, f.check()
}

// check returns nil or an error that matches [headgate.ErrInvalidConfig].
func (f Fields) check() error {
	all := func(set Fields) bool { return f&set == set }
	switch {
	case f>>len(fieldsNames) != 0:
		return invalid("unknown fields %d", uint8(f))
	case f&NoFields != 0 && f != NoFields:
		return invalid("fields %v, want none or some", f)
	case all(Draft11 | Draft7):
		return invalid("draft-11 and draft-7 write the same fields, want one of them")
	case all(XRateLimit | XRateLimitEpoch):
		return invalid("x-ratelimit and x-ratelimit-epoch write the same fields, want one of them")
	}
	return nil
}

// A setter sets fields to one value each, out of an array that is already there. What was set before is replaced. Names are given in
// their canonical form.
type setter struct {
	header http.Header
	values []string
}

func (s *setter) set(name, value string) {
	s.values = append(s.values, value)
	n := len(s.values)
	s.header[name] = s.values[n-1 : n : n]
}

func (s *setter) setInteger(name string, n int64) {
	s.set(name, strconv.FormatInt(min(n, maxInteger), 10))
}

// set writes the fields about o, unless nobody could decide: then there is nothing to tell.
func (f Fields) set(s *setter, o *outcome) {
	if f == NoFields || len(o.policies.limits) == 0 {
		return
	}
	limit, remaining, reset := o.binding.Limit.Capacity(), max(0, o.binding.Remaining), resetOf(o.binding)
	if f&Draft11 != 0 {
		s.set("Ratelimit-Policy", o.policies.field)
		s.set("Ratelimit", draft11(o.policies, o.binding))
	}
	if f&Draft7 != 0 {
		s.set("Ratelimit-Policy", draft7Policy(o.policies.limits))
		s.set("Ratelimit", draft7(limit, remaining, reset))
	}
	if f&Draft6 != 0 {
		s.setInteger("Ratelimit-Limit", limit)
		s.setInteger("Ratelimit-Remaining", remaining)
		s.setInteger("Ratelimit-Reset", reset)
	}
	if f&(XRateLimit|XRateLimitEpoch) != 0 {
		s.setInteger("X-Ratelimit-Limit", limit)
		s.setInteger("X-Ratelimit-Remaining", remaining)
		if f&XRateLimitEpoch != 0 {
			reset = epoch(o.decision.At, o.binding)
		}
		s.setInteger("X-Ratelimit-Reset", reset)
	}
}

func draft11(p *policies, s headgate.State) string {
	var buf [192]byte
	b := append(buf[:0], p.name(s.Limit)...)
	b = appendInteger(append(b, ";r="...), s.Remaining)
	if wait := waitOf(s); wait != headgate.Never {
		b = appendInteger(append(b, ";t="...), seconds(wait))
	}
	return string(b)
}

func draft7Policy(limits []headgate.Limit) string {
	var buf [192]byte
	b := buf[:0]
	for i, l := range limits {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = appendInteger(b, l.Capacity())
		b = appendInteger(append(b, ";w="...), window(l))
	}
	return string(b)
}

func draft7(limit, remaining, reset int64) string {
	var buf [96]byte
	b := appendInteger(append(buf[:0], "limit="...), limit)
	b = appendInteger(append(b, ", remaining="...), remaining)
	b = appendInteger(append(b, ", reset="...), reset)
	return string(b)
}

// waitOf returns how long what s says holds: until the request may be sent again, or, allowed, until the limit is as if never used.
func waitOf(s headgate.State) time.Duration {
	if s.Allowed {
		return s.ResetAfter
	}
	return s.RetryAfter
}

// resetOf returns waitOf in seconds for the dialects that cannot leave it out: where no wait would do, the time until the limit is as if
// never used, or the window of a limit that is.
func resetOf(s headgate.State) int64 {
	wait := waitOf(s)
	switch {
	case wait != headgate.Never:
		return seconds(wait)
	case s.ResetAfter > 0:
		return seconds(s.ResetAfter)
	}
	return window(s.Limit)
}

// epoch returns the instant of the reset in Unix seconds, rounded up. at is that of the decision; zero = now.
func epoch(at time.Time, s headgate.State) int64 {
	if at.IsZero() {
		at = time.Now()
	}
	wait := waitOf(s)
	if wait == headgate.Never {
		wait = time.Duration(resetOf(s)) * time.Second
	}
	end := at.Add(wait)
	if end.Nanosecond() > 0 {
		return end.Unix() + 1
	}
	return end.Unix()
}
