package outbound

import (
	"net/http"
	"strings"
	"time"
)

// Fields is a set of response fields that are believed.
type Fields uint8

const (
	// RetryAfter is Retry-After of a 429 or 503, in seconds or as a date. It goes before all others but RetryAfterMS.
	RetryAfter Fields = 1 << iota
	// RetryAfterMS is Retry-After-Ms of a 429 or 503, in milliseconds. It goes before all others.
	RetryAfterMS
	// RateLimit is RateLimit of draft-ietf-httpapi-ratelimit-headers-11 and of draft 7, and RateLimit-Remaining and RateLimit-Reset of
	// draft 6, of any response.
	RateLimit
	// XRateLimit is X-RateLimit-Remaining with X-RateLimit-Reset (seconds from now, seconds or milliseconds since the epoch, a date, or
	// a duration such as 6m0s) or X-RateLimit-Reset-After, also with -Requests and -Tokens at the end, and spelled X-Rate-Limit, of any
	// response.
	XRateLimit
	// NoFields believes nothing. Not with others.
	NoFields

	// AllFields believes all of them. The default.
	AllFields = RetryAfter | RetryAfterMS | RateLimit | XRateLimit
)

// Advice is what a response says about when to come again.
type advice struct {
	field string        // that said it; "" = none did
	pause time.Duration // 0 = at once
}

// refuses says whether the upstream turned the request away.
func refuses(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

// read finds out what a response says. now is the time here, which counts only where the response has no Date of its own.
//
// A refusal says when to come again by Retry-After-Ms or Retry-After, in this order; where neither can be read, and in any other response,
// a limit of which nothing remains says it, the one that takes longest if there are several. What comes from a cache says nothing of them.
func (f Fields) read(status int, h http.Header, now time.Time) advice {
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	if refuses(status) {
		if d, ok := longest(h["Retry-After-Ms"], parseMilliseconds); ok && f&RetryAfterMS != 0 {
			return advice{"Retry-After-Ms", d}
		}
		after := func(s string) (time.Duration, bool) { return parseRetryAfter(s, now) }
		if d, ok := longest(h["Retry-After"], after); ok && f&RetryAfter != 0 {
			return advice{"Retry-After", d}
		}
	}
	var a advice
	if h["Age"] != nil {
		return a
	}
	denied := status == http.StatusTooManyRequests
	if f&RateLimit != 0 {
		a.add("RateLimit", combined(strings.Join(h["Ratelimit"], ", "), denied))
		a.add("RateLimit-Reset", exhausted(h, "Ratelimit-Remaining", "Ratelimit-Reset", "", denied, now))
	}
	if f&XRateLimit != 0 {
		for _, prefix := range [...]string{"X-Ratelimit-", "X-Rate-Limit-"} {
			for _, of := range [...]string{"", "-Requests", "-Tokens"} {
				a.add("X-RateLimit-Reset", exhausted(h, prefix+"Remaining"+of, prefix+"Reset"+of, prefix+"Reset-After"+of, denied, now))
			}
		}
	}
	return a
}

// add takes what a field says, if it says longer than the others.
func (a *advice) add(field string, d time.Duration) {
	if d > a.pause {
		a.field, a.pause = field, d
	}
}

// longest returns the longest of those values that can be read.
func longest(values []string, parse func(string) (time.Duration, bool)) (most time.Duration, ok bool) {
	for _, v := range values {
		if d, good := parse(strings.TrimSpace(v)); good {
			most, ok = max(most, d), true
		}
	}
	return most, ok
}

// exhausted returns the wait that a pair of fields asks for: nothing remains, and there is a time at which that changes. after is the
// name of a field that goes before reset and is never a point in time. denied says that the response is a denial, so that remaining may
// be missing.
func exhausted(h http.Header, remaining, reset, after string, denied bool, now time.Time) time.Duration {
	switch left := h[remaining]; {
	case len(left) == 0 && denied:
	case len(left) != 1:
		return 0
	default:
		if n, ok := parseDecimal(strings.TrimSpace(left[0]), time.Second); !ok || n != 0 {
			return 0
		}
	}
	if v := h[after]; len(v) == 1 {
		if d, ok := parseDelta(strings.TrimSpace(v[0])); ok {
			return d
		}
	}
	if v := h[reset]; len(v) == 1 {
		if d, ok := parseReset(strings.TrimSpace(v[0]), now); ok {
			return d
		}
	}
	return 0
}

// combined returns the wait that a RateLimit field asks for: a list of limits as in draft 11, or the dictionary of draft 7. A denial with one
// limit alone is a denial by that one, whatever remains of it.
func combined(s string, denied bool) time.Duration {
	if list, ok := parseList(s); ok {
		most := time.Duration(0)
		for _, it := range list {
			r, t := it.params["r"], it.params["t"]
			if !it.value.isName || !r.isInt || r.integer < 0 || it.has("t") && (!t.isInt || t.integer < 0) {
				return 0
			}
			if r.integer == 0 || denied && len(list) == 1 {
				most = max(most, seconds(t.integer))
			}
		}
		return most
	}
	members, ok := parseDictionary(s)
	if !ok {
		return 0
	}
	values := make(map[string]bare, len(members))
	for _, it := range members {
		values[it.key] = it.value
	}
	remaining, reset := values["remaining"], values["reset"]
	if !remaining.isInt || remaining.integer != 0 || !reset.isInt || reset.integer < 0 {
		return 0
	}
	return seconds(reset.integer)
}

func (it item) has(param string) bool { _, ok := it.params[param]; return ok }
