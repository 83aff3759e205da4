package headgate

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/algorithm"
)

// An Algorithm says how a [Limit] counts. docs/semantics.md states what each of them guarantees.
type Algorithm uint8

const (
	// TokenBucket grants over any interval d at most Burst + Count*d/Period tokens, and never one less than that allows. The zero value.
	TokenBucket Algorithm = iota
	// FixedWindow grants at most Count in a window that starts at the key's first request; up to 2*Count across its edge.
	FixedWindow
	// AlignedWindow is FixedWindow with windows at multiples of Period of the store's clock, counted from the Unix epoch.
	AlignedWindow
	// SlidingWindow weighs the previous aligned window by the share of it that a sliding one would still see. At most 2*Count-1 in any Period.
	SlidingWindow
	// SlidingLog grants at most Count in any window of Period, exactly, and remembers every granted request for it.
	SlidingLog
)

// algorithmNames are the names of the text form, in the order of the constants.
var algorithmNames = [...]string{"token-bucket", "fixed-window", "aligned-window", "sliding-window", "sliding-log"}

// String returns the name used in the text form of a limit, such as "fixed-window".
func (a Algorithm) String() string {
	if int(a) < len(algorithmNames) {
		return algorithmNames[a]
	}
	return "algorithm(" + strconv.Itoa(int(a)) + ")"
}

// Bounds that [Limit.Validate] holds a limit to. They keep every product that a decision needs exact.
const (
	MaxCount    int64         = 1e15                  // largest Count and Burst, in tokens
	MaxLogCount int64         = 100_000               // largest Count of a SlidingLog
	MinPeriod   time.Duration = time.Millisecond      // shortest Period
	MaxPeriod   time.Duration = 366 * 24 * time.Hour  // longest Period
	MaxRefill   time.Duration = 2922 * 24 * time.Hour // longest time an empty TokenBucket may take to fill: eight years
	MaxName     int           = 128                   // longest Name, in bytes
)

// A Limit is a number of tokens per period, and the way they are counted. The zero Limit is not valid: its Period is zero.
// A Limit is a plain value: copy it, compare it, share it.
type Limit struct {
	// Name appears in headers and metrics and, with Algorithm, identifies the counter: two limits of one name share what a key has
	// used, whatever their numbers, so that numbers can be changed. "" derives the identity from the text form; then other numbers
	// are another counter. At most MaxName bytes of printable ASCII.
	Name string
	// Algorithm is how tokens are counted; the zero value is TokenBucket.
	Algorithm Algorithm
	// Count is the number of tokens per Period. 0 = nothing ever passes. Negative is invalid, as is more than MaxCount.
	Count int64
	// Period is the time in which Count tokens are granted: MinPeriod to MaxPeriod, in whole microseconds (the store's clock has no finer ones).
	Period time.Duration
	// Burst is the capacity of a TokenBucket in tokens. 0 = Count. Must be 0 for the other algorithms.
	Burst int64
}

// PerSecond returns a TokenBucket of n tokens a second with a burst of n. Negative n makes a limit that Validate refuses.
func PerSecond(n int64) Limit { return Limit{Count: n, Period: time.Second} }

// PerMinute returns a TokenBucket of n tokens a minute with a burst of n.
func PerMinute(n int64) Limit { return Limit{Count: n, Period: time.Minute} }

// PerHour returns a TokenBucket of n tokens an hour with a burst of n.
func PerHour(n int64) Limit { return Limit{Count: n, Period: time.Hour} }

// PerDay returns a TokenBucket of n tokens per 24 hours with a burst of n.
func PerDay(n int64) Limit { return Limit{Count: n, Period: 24 * time.Hour} }

// Capacity returns the most tokens that one request can be granted: Burst, or Count where Burst is 0; 0 where Count is 0.
func (l Limit) Capacity() int64 {
	if l.Count == 0 || l.Burst == 0 {
		return l.Count
	}
	return l.Burst
}

// Validate returns nil, or an error that matches [ErrInvalidLimit] and says which number is wrong and what would be right.
func (l Limit) Validate() error { return l.check() }

// check is Validate. Requests are checked through it, since a copy of the limit for each of them would cost more than the checks.
func (l *Limit) check() error {
	switch {
	case int(l.Algorithm) >= len(algorithmNames):
		return l.invalid("unknown algorithm %d", l.Algorithm)
	case len(l.Name) > MaxName:
		return l.invalid("name of %d bytes, want at most %d", len(l.Name), MaxName)
	case l.Count < 0 || l.Count > MaxCount:
		return l.invalid("count %d, want 0 to %d", l.Count, MaxCount)
	case l.Algorithm == SlidingLog && l.Count > MaxLogCount:
		return l.invalid("a sliding log keeps an entry per request, want a count of at most %d, or sliding-window", MaxLogCount)
	case l.Period < MinPeriod || l.Period > MaxPeriod:
		return l.invalid("period %v, want %v to %v", l.Period, MinPeriod, MaxPeriod)
	case l.Period%time.Microsecond != 0:
		return l.invalid("period %v, want whole microseconds", l.Period)
	case l.Burst < 0 || l.Burst > MaxCount:
		return l.invalid("burst %d, want 0 (= count) to %d", l.Burst, MaxCount)
	case l.Burst != 0 && l.Algorithm != TokenBucket:
		return l.invalid("burst %d, but only a token bucket has one", l.Burst)
	case l.Algorithm == TokenBucket && l.params().Life > MaxRefill.Microseconds():
		return l.invalid("an empty bucket would take more than %v to fill, want a smaller burst or a higher count", MaxRefill)
	}
	for i := range len(l.Name) {
		if c := l.Name[i]; c < ' ' || c > '~' {
			return l.invalid("byte %#x in the name, want printable ASCII", c)
		}
	}
	return nil
}

func (l *Limit) invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalidLimit, fmt.Sprintf(format, args...))
}

// params is l in the terms of the pure algorithms.
func (l *Limit) params() algorithm.Params {
	return algorithm.NewParams(algorithm.Kind(l.Algorithm), l.Count, l.Period.Microseconds(), l.Burst)
}

// periodUnits are the spellings of one unit; the first of each is the one String writes.
var periodUnits = []struct {
	unit  time.Duration
	names []string
}{
	{time.Millisecond, []string{"ms", "millisecond"}},
	{time.Second, []string{"s", "sec", "second"}},
	{time.Minute, []string{"minute", "min", "m"}},
	{time.Hour, []string{"hour", "h"}},
	{24 * time.Hour, []string{"day", "d"}},
	{7 * 24 * time.Hour, []string{"week", "w"}},
}

// String returns the text form that [ParseLimit] reads: "100/s", "100/minute burst 20", "5/s sliding-log". The name is not part of it.
func (l Limit) String() string { return string(l.appendText(make([]byte, 0, 48))) }

func (l Limit) appendText(b []byte) []byte {
	b = append(strconv.AppendInt(b, l.Count, 10), '/')
	b = append(b, periodText(l.Period)...)
	if l.Burst != 0 {
		b = strconv.AppendInt(append(b, " burst "...), l.Burst, 10)
	}
	if l.Algorithm != TokenBucket {
		b = append(append(b, ' '), l.Algorithm.String()...)
	}
	return b
}

func periodText(d time.Duration) string {
	for _, u := range periodUnits {
		if d == u.unit {
			return u.names[0]
		}
	}
	s := d.String() // such as "1m0s" and "24h0m0s"; the zero parts say nothing
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// ParseLimit reads the text form: COUNT/PERIOD, then in any order "burst N" and an algorithm ("token-bucket", "fixed-window",
// "aligned-window", "sliding-window", "sliding-log"). PERIOD is a unit (ms, s, minute, hour, day, week and their usual short
// forms) or a Go duration such as 24h or 1m30s. The limit is validated; errors match [ErrInvalidLimit].
func ParseLimit(s string) (Limit, error) {
	words := strings.Fields(s)
	if len(words) == 0 {
		return Limit{}, parseError(s, `want a form such as "100/s" or "100/minute burst 20"`)
	}
	count, period, ok := strings.Cut(words[0], "/")
	if !ok {
		return Limit{}, parseError(s, `want COUNT/PERIOD, such as "100/s"`)
	}
	var l Limit
	var err error
	if l.Count, err = parseCount(count); err != nil {
		return Limit{}, parseError(s, "count "+strconv.Quote(excerpt(count))+" is not a whole number that fits")
	}
	if l.Period, err = parsePeriod(period); err != nil {
		return Limit{}, parseError(s, "period "+strconv.Quote(excerpt(period))+" is neither a unit such as s, minute, hour, day nor a duration such as 24h")
	}
	if err := l.parseOptions(words[1:], s); err != nil {
		return Limit{}, err
	}
	if err := l.Validate(); err != nil {
		return Limit{}, fmt.Errorf("%w (in %q)", err, excerpt(s))
	}
	return l, nil
}

// parseOptions reads what follows COUNT/PERIOD: each option at most once.
func (l *Limit) parseOptions(words []string, s string) error {
	burst, algorithm := false, false
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		if word == "burst" {
			if burst || len(words) == 0 {
				return parseError(s, `want "burst N" once`)
			}
			n, err := parseCount(words[0])
			if err != nil || n == 0 {
				return parseError(s, "burst "+strconv.Quote(excerpt(words[0]))+" is not a whole number above 0 that fits")
			}
			l.Burst, burst, words = n, true, words[1:]
			continue
		}
		a, ok := parseAlgorithm(word)
		if !ok {
			return parseError(s, "unknown word "+strconv.Quote(excerpt(word))+`, want "burst N" or one of `+strings.Join(algorithmNames[:], ", "))
		}
		if algorithm {
			return parseError(s, "two algorithms")
		}
		l.Algorithm, algorithm = a, true
	}
	return nil
}

func parseAlgorithm(s string) (Algorithm, bool) {
	for i, name := range algorithmNames {
		if s == name {
			return Algorithm(i), true
		}
	}
	return 0, false
}

// parseCount reads digits alone: no sign, no separators.
func parseCount(s string) (int64, error) {
	n, err := strconv.ParseUint(s, 10, 63)
	return int64(n), err
}

func parsePeriod(s string) (time.Duration, error) {
	for _, u := range periodUnits {
		for _, name := range u.names {
			if s == name || s == name+"s" && len(name) > 2 {
				return u.unit, nil
			}
		}
	}
	if days, ok := strings.CutSuffix(s, "d"); ok { // 30d: the unit that time.ParseDuration lacks
		n, err := parseCount(days)
		if err != nil || n > math.MaxInt64/int64(24*time.Hour) {
			return 0, ErrInvalidLimit
		}
		return time.Duration(n) * 24 * time.Hour, nil
	}
	return time.ParseDuration(s)
}

func parseError(s, problem string) error {
	return fmt.Errorf("%w: %q: %s", ErrInvalidLimit, excerpt(s), problem)
}

// excerpt is as much of s as belongs into an error.
func excerpt(s string) string {
	if len(s) > 100 {
		return s[:100] + "..."
	}
	return s
}

// MarshalText writes the text form, for JSON, YAML and flags. An invalid limit is an error that matches [ErrInvalidLimit].
func (l Limit) MarshalText() ([]byte, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	return l.appendText(nil), nil
}

// UnmarshalText reads the text form as [ParseLimit] does. It leaves Name as it is, and the whole limit on an error.
func (l *Limit) UnmarshalText(text []byte) error {
	parsed, err := ParseLimit(string(text))
	if err != nil {
		return err
	}
	parsed.Name = l.Name
	*l = parsed
	return nil
}
