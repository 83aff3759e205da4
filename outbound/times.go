package outbound

import (
	"math"
	"net/http"
	"strings"
	"time"
)

// longestTime is what all longer times are read as. It is more than any pause may last, and far from where sums overflow.
const longestTime = 100 * 366 * 24 * time.Hour

// Numbers from these on are points in time rather than times from now: 2001-09-09 in seconds, 1973-03-03 in milliseconds. As seconds from now
// they would be 31 years and 3,168 years.
const (
	epochSeconds = 1_000_000_000
	epochMillis  = 100_000_000_000
)

// seconds returns n seconds, n not negative, or longestTime.
func seconds(n int64) time.Duration {
	if n > int64(longestTime/time.Second) {
		return longestTime
	}
	return time.Duration(n) * time.Second
}

// parseRetryAfter reads Retry-After (RFC 9110, 10.2.3): whole seconds, or a date, which is one by the clock of who wrote it.
func parseRetryAfter(s string, now time.Time) (time.Duration, bool) {
	if s != "" && digits(s) {
		return parseDecimal(s, time.Second)
	}
	at, err := http.ParseTime(s)
	if err != nil {
		return 0, false
	}
	return until(at, now), true
}

func parseMilliseconds(s string) (time.Duration, bool) { return parseDecimal(s, time.Millisecond) }

// parseDelta reads a time from now: seconds, with a fraction or without, or a duration such as 6m0s.
func parseDelta(s string) (time.Duration, bool) {
	if d, ok := parseDecimal(s, time.Second); ok {
		return d, true
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 && s[0] != '-' && s[0] != '+' {
		return min(d, longestTime), true
	}
	return 0, false
}

// parseReset reads a time from now as parseDelta does, or a point in time: seconds or milliseconds since the epoch, or a date.
func parseReset(s string, now time.Time) (time.Duration, bool) {
	if whole, part, point := strings.Cut(s, "."); whole != "" && len(whole) <= 18 && digits(whole) && number(whole) >= epochSeconds {
		at := time.UnixMilli(number(whole))
		if number(whole) < epochMillis {
			at = time.Unix(number(whole), 0)
		}
		if !point {
			return until(at, now), true
		}
		fraction, ok := parseDecimal("0."+part, time.Second)
		return until(at.Add(fraction), now), ok
	}
	if d, ok := parseDelta(s); ok {
		return d, true
	}
	at, err := http.ParseTime(s)
	if err != nil {
		if at, err = time.Parse(time.RFC3339, s); err != nil {
			return 0, false
		}
	}
	return until(at, now), true
}

// until returns the time from now to at, 0 for a point in the past.
func until(at, now time.Time) time.Duration { return min(max(0, at.Sub(now)), longestTime) }

// parseDecimal reads digits, and possibly a point and more digits, of a unit. What is longer than longestTime is read as
// that.
func parseDecimal(s string, unit time.Duration) (time.Duration, bool) {
	whole, part, point := strings.Cut(s, ".")
	if whole == "" || !digits(whole) || point && (part == "" || !digits(part)) {
		return 0, false
	}
	if whole = strings.TrimLeft(whole, "0"); len(whole) > 18 {
		return longestTime, true
	}
	n := number(whole)
	if n > int64(longestTime/unit) {
		return longestTime, true
	}
	const most = 15 // digits of a fraction that can matter
	fraction := 0.0
	if part = part[:min(len(part), most)]; part != "" {
		fraction = float64(number(part)) / math.Pow10(len(part))
	}
	return time.Duration(n)*unit + time.Duration(math.Round(fraction*float64(unit))), true
}

func digits(s string) bool {
	for i := range len(s) {
		if !digit(s[i]) {
			return false
		}
	}
	return true
}

// number returns what at most 18 digits say.
func number(s string) int64 {
	n := int64(0)
	for i := range len(s) {
		n = n*10 + int64(s[i]-'0')
	}
	return n
}
