package outbound

import (
	"net/http"
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// header makes a header of names and values in turn.
func header(pairs ...string) http.Header {
	h := make(http.Header)
	for i := 0; i+1 < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

const s = time.Second

func TestRead(t *testing.T) {
	date := noon.Add(-3 * time.Hour).Format(http.TimeFormat) // the upstream's clock is three hours behind
	tests := []struct {
		name   string
		status int
		header http.Header
		field  string // "" = nothing is said
		pause  time.Duration
	}{
		{"nothing", 429, header(), "", 0},
		{"503 alone", 503, header(), "", 0},
		{"seconds", 429, header("Retry-After", "2"), "Retry-After", 2 * s},
		{"seconds on 503", 503, header("Retry-After", " 120 "), "Retry-After", 120 * s},
		{"seconds on 200", 200, header("Retry-After", "2"), "", 0},
		{"seconds on 301", 301, header("Retry-After", "2"), "", 0},
		{"zero", 429, header("Retry-After", "0"), "Retry-After", 0},
		{"huge", 429, header("Retry-After", "99999999999999999999999999"), "Retry-After", longestTime},
		{"large", 429, header("Retry-After", "9223372037"), "Retry-After", longestTime},
		{"negative", 429, header("Retry-After", "-1"), "", 0},
		{"a fraction", 429, header("Retry-After", "1.5"), "", 0},
		{"a word", 429, header("Retry-After", "soon"), "", 0},
		{"empty", 429, header("Retry-After", ""), "", 0},
		{"two", 429, header("Retry-After", "2", "Retry-After", "5"), "Retry-After", 5 * s},
		{"one of two", 429, header("Retry-After", "x", "Retry-After", "5"), "Retry-After", 5 * s},
		{"a date", 429, header("Retry-After", noon.Add(7*s).Format(http.TimeFormat)), "Retry-After", 7 * s},
		{"a date by theirs", 429, header("Date", date, "Retry-After", noon.Add(-3*time.Hour+9*s).Format(http.TimeFormat)), "Retry-After", 9 * s},
		{"a date in RFC 850", 503, header("Retry-After", noon.Add(7*s).Format(time.RFC850)), "Retry-After", 7 * s},
		{"a date in asctime", 503, header("Retry-After", noon.Add(7*s).Format(time.ANSIC)), "Retry-After", 7 * s},
		{"a past date", 429, header("Retry-After", noon.Add(-7*s).Format(http.TimeFormat)), "Retry-After", 0},
		{"a far date", 429, header("Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT"), "Retry-After", longestTime},
		{"a Date that is none", 429, header("Date", "today", "Retry-After", noon.Add(7*s).Format(http.TimeFormat)), "Retry-After", 7 * s},

		{"milliseconds", 429, header("Retry-After-Ms", "250"), "Retry-After-Ms", 250 * time.Millisecond},
		{"milliseconds with a fraction", 503, header("retry-after-ms", "0.5"), "Retry-After-Ms", 500 * time.Microsecond},
		{"milliseconds before seconds", 429, header("Retry-After", "1", "Retry-After-Ms", "1"), "Retry-After-Ms", time.Millisecond},
		{"no milliseconds", 429, header("Retry-After", "1", "Retry-After-Ms", "x"), "Retry-After", s},
		{"milliseconds on 200", 200, header("Retry-After-Ms", "250"), "", 0},

		{"draft 11", 200, header("RateLimit", `"default";r=0;t=30`), "RateLimit", 30 * s},
		{"draft 11, some left", 200, header("RateLimit", `"default";r=5;t=30`), "", 0},
		{"draft 11, several", 200, header("RateLimit", `"a";r=0;t=3, "b";r=9;t=60`, "RateLimit", `"c";t=5;r=0;pk=:YQ==:`), "RateLimit", 5 * s},
		{"draft 11, no t", 200, header("RateLimit", `"default";r=0`), "", 0},
		{"draft 11, denied by cost", 429, header("RateLimit", `"default";r=5;t=30`), "RateLimit", 30 * s},
		{"draft 11, denied by one of two", 429, header("RateLimit", `"a";r=5;t=30, "b";r=2;t=3`), "", 0},
		{"draft 11, after Retry-After", 429, header("RateLimit", `"default";r=0;t=30`, "Retry-After", "3"), "Retry-After", 3 * s},
		{"draft 11, beside Retry-After: 0", 429, header("RateLimit", `"default";r=0;t=30`, "Retry-After", "0"), "Retry-After", 0},
		{"draft 11, beside a bad Retry-After", 429, header("RateLimit", `"default";r=0;t=30`, "Retry-After", "x"), "RateLimit", 30 * s},
		{"draft 11 on 503", 503, header("RateLimit", `"default";r=0;t=30`), "RateLimit", 30 * s},
		{"draft 11, no r", 429, header("RateLimit", `"default";t=30`), "", 0},
		{"draft 11, negative r", 429, header("RateLimit", `"default";r=-1;t=30`), "", 0},
		{"draft 11, negative t", 429, header("RateLimit", `"default";r=0;t=-30`), "", 0},
		{"draft 11, a decimal", 429, header("RateLimit", `"default";r=0;t=3.5`), "", 0},
		{"draft 11, 16 digits", 429, header("RateLimit", `"default";r=0;t=1000000000000000`), "", 0},
		{"draft 11, 15 digits", 429, header("RateLimit", `"default";r=0;t=999999999999999`), "RateLimit", longestTime},
		{"draft 11, one mistake", 429, header("RateLimit", `"a";r=0;t=3, "b;r=0`), "", 0},
		{"draft 11, a comma too many", 429, header("RateLimit", `"a";r=0;t=3,`), "", 0},
		{"draft 11, from a cache", 200, header("RateLimit", `"default";r=0;t=30`, "Age", "3"), "", 0},
		{"Retry-After with an Age", 429, header("Retry-After", "3", "Age", "0"), "Retry-After", 3 * s},

		{"draft 7", 200, header("RateLimit", "limit=10, remaining=0, reset=7"), "RateLimit", 7 * s},
		{"draft 7, some left", 429, header("RateLimit", "limit=10, remaining=1, reset=7"), "", 0},
		{"draft 7, no reset", 200, header("RateLimit", "limit=10, remaining=0"), "", 0},
		{"draft 7, malformed", 200, header("RateLimit", "limit=10, remaining=0, reset="), "", 0},
		{"draft 6", 200, header("RateLimit-Limit", "10", "RateLimit-Remaining", "0", "RateLimit-Reset", "7"), "RateLimit-Reset", 7 * s},
		{"draft 6, denied", 429, header("RateLimit-Reset", "7"), "RateLimit-Reset", 7 * s},
		{"draft 6, not denied", 200, header("RateLimit-Reset", "7"), "", 0},

		{"x, delta", 200, header("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "60"), "X-RateLimit-Reset", 60 * s},
		{"x, some left", 200, header("X-RateLimit-Remaining", "1", "X-RateLimit-Reset", "60"), "", 0},
		{"x, epoch", 403, header("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1772366460"), "X-RateLimit-Reset", 60 * s},
		{"x, epoch by theirs", 429, header("Date", date, "X-RateLimit-Reset", "1772355661"), "X-RateLimit-Reset", 61 * s},
		{"x, epoch with a fraction", 429, header("X-RateLimit-Reset", "1772366400.25"), "X-RateLimit-Reset", 250 * time.Millisecond},
		{"x, epoch in milliseconds", 429, header("X-RateLimit-Reset", "1772366400250"), "X-RateLimit-Reset", 250 * time.Millisecond},
		{"x, past epoch", 429, header("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1772366300"), "", 0},
		{"x, longest delta", 429, header("X-RateLimit-Reset", "999999999"), "X-RateLimit-Reset", 999999999 * s},
		{"x, a date", 429, header("X-RateLimit-Reset", "2026-03-01T12:00:05Z"), "X-RateLimit-Reset", 5 * s},
		{"x, after", 429, header("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1772366460", "X-RateLimit-Reset-After", "1.337"), "X-RateLimit-Reset", 1337 * time.Millisecond},
		{"x, tokens", 200, header("X-RateLimit-Remaining-Requests", "59", "X-RateLimit-Reset-Requests", "1s", "X-RateLimit-Remaining-Tokens", "0", "X-RateLimit-Reset-Tokens", "6m0s"), "X-RateLimit-Reset", 360 * s},
		{"x, other spelling", 429, header("X-Rate-Limit-Remaining", "0", "X-Rate-Limit-Reset", "5"), "X-RateLimit-Reset", 5 * s},
		{"x, no number", 429, header("X-RateLimit-Remaining", "none", "X-RateLimit-Reset", "60"), "", 0},
		{"x, negative", 429, header("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "-60"), "", 0},
		{"x, negative duration", 429, header("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "-6s"), "", 0},
		{"x, infinite", 429, header("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "Inf"), "", 0},
		{"x, twice", 429, header("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "5", "X-RateLimit-Reset", "6"), "", 0},
		{"x, huge", 429, header("X-RateLimit-Reset", "999999999999999999999"), "X-RateLimit-Reset", longestTime},
		{"the longest of all", 200, header("RateLimit", `"d";r=0;t=3`, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "4"), "X-RateLimit-Reset", 4 * s},
	}
	for _, tt := range tests {
		got := AllFields.read(tt.status, tt.header, noon)
		if got != (advice{tt.field, tt.pause}) {
			t.Errorf("%s: %q %v, want %q %v", tt.name, got.field, got.pause, tt.field, tt.pause)
		}
	}
}

func TestOnlyWhatIsBelieved(t *testing.T) {
	all := header("Retry-After-Ms", "1000", "Retry-After", "2", "RateLimit", `"d";r=0;t=3`, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "4")
	for fields, want := range map[Fields]time.Duration{
		AllFields: 1 * s, RetryAfter: 2 * s, RetryAfterMS: 1 * s, RateLimit: 3 * s, XRateLimit: 4 * s, RateLimit | RetryAfter: 2 * s, NoFields: 0,
	} {
		if got := fields.read(429, all, noon).pause; got != want {
			t.Errorf("fields %b: %v, want %v", fields, got, want)
		}
	}
}

// Whatever a field holds, it is read without harm, as a time that is not negative and not too long for sums.
func FuzzRead(f *testing.F) {
	for _, v := range []string{
		"2", "0", "-1", "1.5", "99999999999999999999", "Sun, 01 Mar 2026 12:00:00 GMT", "1772366460", "1772366400250", "6m0s", "2026-03-01T12:00:05Z",
		`"a";r=0;t=3, "b";r=1;t=2;pk=:YQ==:`, "limit=10, remaining=0, reset=7", `a;x=@1;y=%"z";z=?1;w=-1.5`, "1.", ".5", "999999999.999999999999999999",
	} {
		f.Add(v, 429)
	}
	f.Fuzz(func(t *testing.T, v string, status int) {
		for _, name := range []string{"Retry-After", "Retry-After-Ms", "RateLimit", "X-RateLimit-Reset", "X-RateLimit-Reset-After", "RateLimit-Reset", "Date", "X-RateLimit-Remaining"} {
			h := header("X-RateLimit-Reset", "5", name, v)
			if name == "X-RateLimit-Reset" {
				h = header(name, v)
			}
			a := AllFields.read(status, h, noon)
			if a.pause < 0 || a.pause > longestTime || a.pause > 0 && a.field == "" {
				t.Errorf("%s: %q with %d: %+v", name, v, status, a)
			}
			if again := AllFields.read(status, h, noon); again != a {
				t.Errorf("%s: %q: %+v and then %+v", name, v, a, again)
			}
		}
	})
}

// A list that is read is one that RFC 9651 allows, as far as its shape goes; what is not is refused.
func TestStructured(t *testing.T) {
	lists := map[string]int{ // members, 0 = none can be read
		`"a"`: 1, `a, b;x`: 2, `"a\"b\\";x="y", *t/u:1`: 2, "1,\t-2.5 ,  ?0": 3, `:YQ==:;a=@17;b=%"caf%c3%a9"`: 1, "  1  ": 1, `"a"; r=0 ;t=1`: 0, `"a"; r=0;  t=1`: 1,
		"": 0, ",": 0, "a,": 0, "a b": 0, `"a`: 0, `"a\x"`: 0, "\"\x01\"": 0, "1.": 0, "1.2345": 0, "1234567890123456": 0, "-": 0, "?2": 0, ":YQ": 0, "@1.5": 0, "a;": 0, "a;B": 0,
		"a;x=": 0, "(a b)": 0, "a=1": 0, `%a"`: 0, "é": 0, "1234567890123.0": 0,
	}
	for text, want := range lists {
		if got, ok := parseList(text); ok != (want > 0) || len(got) != want {
			t.Errorf("list %q: %d members, %v; want %d", text, len(got), ok, want)
		}
	}
	members := map[string]int{"a=1, b, c=?0;x": 3, "*a.b-c_d=1": 1, "": 0, "A=1": 0, "a=": 0, "a=1,": 0, "a=1 b=2": 0}
	for text, want := range members {
		if got, ok := parseDictionary(text); ok != (want > 0) || len(got) != want {
			t.Errorf("dictionary %q: %d members, %v; want %d", text, len(got), ok, want)
		}
	}
}
