package headgate_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

const day = 24 * time.Hour

func TestConstructors(t *testing.T) {
	for _, tt := range []struct{ got, want headgate.Limit }{
		{headgate.PerSecond(5), headgate.Limit{Count: 5, Period: time.Second}},
		{headgate.PerMinute(5), headgate.Limit{Count: 5, Period: time.Minute}},
		{headgate.PerHour(5), headgate.Limit{Count: 5, Period: time.Hour}},
		{headgate.PerDay(5), headgate.Limit{Count: 5, Period: day}},
	} {
		if tt.got != tt.want {
			t.Errorf("got %+v, want %+v", tt.got, tt.want)
		}
		if err := tt.got.Validate(); err != nil {
			t.Errorf("%v: %v", tt.got, err)
		}
	}
	if err := headgate.PerSecond(-1).Validate(); !errors.Is(err, headgate.ErrInvalidLimit) {
		t.Errorf("PerSecond(-1): %v, want ErrInvalidLimit", err)
	}
}

func TestCapacity(t *testing.T) {
	for text, want := range map[string]int64{"5/s": 5, "5/s burst 9": 9, "5/s burst 2": 2, "0/s": 0, "0/s burst 4": 0, "7/h sliding-log": 7} {
		if got := parse(t, text).Capacity(); got != want {
			t.Errorf("%s: capacity %d, want %d", text, got, want)
		}
	}
}

func TestValidate(t *testing.T) {
	type L = headgate.Limit
	const most = headgate.MaxCount
	named := func(name string) L { return L{Name: name, Count: 1, Period: time.Second} }
	for _, tt := range []struct {
		limit L
		wrong string // part of the message; "" = valid
	}{
		{L{}, "period 0s, want 1ms to"},
		{L{Period: time.Second}, ""}, // count 0: nothing ever passes
		{L{Count: -1, Period: time.Second}, "count -1"},
		{L{Count: most, Period: time.Second}, ""},
		{L{Count: most + 1, Period: time.Second}, "count 1000000000000001, want 0 to 1000000000000000"},
		{L{Count: math.MaxInt64, Period: time.Second}, "count 9223372036854775807"},
		{L{Count: 1, Period: -time.Second}, "period -1s"},
		{L{Count: 1, Period: headgate.MinPeriod}, ""},
		{L{Count: 1, Period: headgate.MinPeriod - time.Microsecond}, "period 999µs"},
		{L{Count: 1, Period: headgate.MaxPeriod}, ""},
		{L{Count: 1, Period: headgate.MaxPeriod + time.Microsecond}, "want 1ms to 8784h0m0s"},
		{L{Count: 1, Period: math.MaxInt64}, "period 2562047h"},
		{L{Count: 1, Period: time.Second + time.Microsecond}, ""},
		{L{Count: 1, Period: time.Second + 1}, "want whole microseconds"},
		{L{Count: 1, Period: time.Second, Burst: -1}, "burst -1"},
		{L{Count: most, Period: time.Second, Burst: most}, ""},
		{L{Count: most, Period: time.Second, Burst: most + 1}, "burst 1000000000000001, want 0 (= count) to"},
		{L{Count: 1, Period: day, Burst: 2922}, ""},
		{L{Count: 1, Period: day, Burst: 2923}, "would take more than 70128h0m0s to fill"},
		{L{Count: 1, Period: headgate.MaxPeriod, Burst: most}, "to fill"},
		{L{Count: 2, Period: time.Second, Burst: 1}, ""},
		{L{Count: 1, Period: time.Second, Burst: 1, Algorithm: headgate.FixedWindow}, "only a token bucket has one"},
		{L{Count: 1, Period: time.Second, Burst: 1, Algorithm: headgate.AlignedWindow}, "only a token bucket has one"},
		{L{Count: 1, Period: time.Second, Burst: 1, Algorithm: headgate.SlidingWindow}, "only a token bucket has one"},
		{L{Count: 1, Period: time.Second, Burst: 1, Algorithm: headgate.SlidingLog}, "only a token bucket has one"},
		{L{Count: headgate.MaxLogCount, Period: time.Second, Algorithm: headgate.SlidingLog}, ""},
		{L{Count: headgate.MaxLogCount + 1, Period: time.Second, Algorithm: headgate.SlidingLog}, "or sliding-window"},
		{L{Count: most, Period: headgate.MaxPeriod, Algorithm: headgate.SlidingWindow}, ""},
		{L{Count: 1, Period: time.Second, Algorithm: headgate.SlidingLog + 1}, "unknown algorithm 5"},
		{named(strings.Repeat("n", headgate.MaxName)), ""},
		{named(strings.Repeat("n", headgate.MaxName+1)), "name of 129 bytes, want at most 128"},
		{named(" ~"), ""},
		{named("a\x1f"), "byte 0x1f in the name"},
		{named("\x7f"), "byte 0x7f in the name"},
		{named("é"), "byte 0xc3 in the name, want printable ASCII"},
	} {
		err := tt.limit.Validate()
		switch {
		case tt.wrong == "" && err != nil:
			t.Errorf("%+v: %v", tt.limit, err)
		case tt.wrong != "" && (!errors.Is(err, headgate.ErrInvalidLimit) || !strings.Contains(err.Error(), tt.wrong)):
			t.Errorf("%+v: error %v, want ErrInvalidLimit with %q", tt.limit, err, tt.wrong)
		}
	}
}

func TestParseLimit(t *testing.T) {
	type L = headgate.Limit
	for _, tt := range []struct {
		text string
		want L
		form string // what String makes of it; "" = text
	}{
		{"100/s", L{Count: 100, Period: time.Second}, ""},
		{"0/s", L{Period: time.Second}, ""},
		{"100/minute burst 20", L{Count: 100, Period: time.Minute, Burst: 20}, ""},
		{"1000/24h fixed-window", L{Count: 1000, Period: day, Algorithm: headgate.FixedWindow}, "1000/day fixed-window"},
		{"5/s sliding-log", L{Count: 5, Period: time.Second, Algorithm: headgate.SlidingLog}, ""},
		{"5/s sliding-window", L{Count: 5, Period: time.Second, Algorithm: headgate.SlidingWindow}, ""},
		{"5/s aligned-window", L{Count: 5, Period: time.Second, Algorithm: headgate.AlignedWindow}, ""},
		{"5/s token-bucket burst 9", L{Count: 5, Period: time.Second, Burst: 9}, "5/s burst 9"},
		{"5/s burst 9 token-bucket", L{Count: 5, Period: time.Second, Burst: 9}, "5/s burst 9"},
		{"\t 7/1m30s \n", L{Count: 7, Period: 90 * time.Second}, "7/1m30s"},
		{"7/36h", L{Count: 7, Period: 36 * time.Hour}, ""},
		{"7/10m", L{Count: 7, Period: 10 * time.Minute}, ""},
		{"7/10h10m", L{Count: 7, Period: 610 * time.Minute}, ""},
		{"7/1h0m1s", L{Count: 7, Period: time.Hour + time.Second}, ""},
		{"7/1.5ms", L{Count: 7, Period: 1500 * time.Microsecond}, ""},
		{"7/30d", L{Count: 7, Period: 30 * day}, "7/720h"},
		{"007/0.5s", L{Count: 7, Period: 500 * time.Millisecond}, "7/500ms"},
		{"1000000000000000/366d", L{Count: headgate.MaxCount, Period: headgate.MaxPeriod}, "1000000000000000/8784h"},
	} {
		got, err := headgate.ParseLimit(tt.text)
		if err != nil || got != tt.want {
			t.Errorf("ParseLimit(%q) = %+v, %v, want %+v", tt.text, got, err, tt.want)
		}
		if tt.form == "" {
			tt.form = tt.text
		}
		if form := got.String(); form != tt.form {
			t.Errorf("ParseLimit(%q).String() = %q, want %q", tt.text, form, tt.form)
		}
	}
}

func TestParseLimitUnits(t *testing.T) {
	for want, spellings := range map[time.Duration]string{
		time.Millisecond: "ms millisecond milliseconds 1ms",
		time.Second:      "s sec secs second seconds 1s 1000ms",
		time.Minute:      "m min mins minute minutes 1m 60s",
		time.Hour:        "h hour hours 1h 60m",
		day:              "d day days 1d 24h",
		7 * day:          "w week weeks 7d 168h",
	} {
		for _, s := range strings.Fields(spellings) {
			if l := parse(t, "9/"+s); l.Period != want {
				t.Errorf("9/%s: period %v, want %v", s, l.Period, want)
			}
		}
	}
}

func TestParseLimitRefuses(t *testing.T) {
	for _, tt := range []struct{ text, message string }{
		{"", `want a form such as "100/s"`},
		{"  ", `want a form such as "100/s"`},
		{"100", "want COUNT/PERIOD"},
		{"100 / s", "want COUNT/PERIOD"},
		{"/s", `count "" is not a whole number that fits`},
		{"-1/s", `count "-1" is not a whole number that fits`},
		{"+1/s", `count "+1"`},
		{"1.5/s", `count "1.5"`},
		{"1_000/s", `count "1_000"`},
		{"1e3/s", `count "1e3"`},
		{"9223372036854775808/s", "is not a whole number that fits"},
		{"9223372036854775807/s", "want 0 to 1000000000000000"},
		{"1/", `period "" is neither a unit such as s, minute, hour, day nor a duration such as 24h`},
		{"1/ss", `period "ss" is neither`},
		{"1/fortnight", `period "fortnight" is neither`},
		{"1/S", `period "S" is neither`},
		{"1/10", `period "10" is neither`},
		{"1/0", "period 0s, want 1ms"}, // time.ParseDuration reads it
		{"1/-1s", "period -1s"},
		{"1/1us", "period 1µs"},
		{"1/1000000h", "period 1000000h0m0s"},
		{"1/367d", "period 8808h0m0s"},
		{"1/999999999999d", `period "999999999999d" is neither`},
		{"1/1.0005ms", "want whole microseconds"},
		{"1/s/s", `period "s/s" is neither`},
		{"1/s burst", `want "burst N" once`},
		{"1/s burst 2 burst 3", `want "burst N" once`},
		{"1/s burst x", `burst "x" is not a whole number above 0`},
		{"1/s burst 0", `burst "0" is not a whole number above 0`},
		{"1/s burst -1", `burst "-1" is not a whole number above 0`},
		{"1/s fixed-window burst 2", "only a token bucket has one"},
		{"1/s fixed-window fixed-window", "two algorithms"},
		{"1/s fixed", `unknown word "fixed", want "burst N" or one of token-bucket, fixed-window, aligned-window, sliding-window, sliding-log`},
		{"100001/s sliding-log", "or sliding-window"},
		{"1/day burst 3000", "to fill"},
	} {
		l, err := headgate.ParseLimit(tt.text)
		if !errors.Is(err, headgate.ErrInvalidLimit) || !strings.Contains(err.Error(), tt.message) {
			t.Errorf("ParseLimit(%q): error %v, want ErrInvalidLimit with %q", tt.text, err, tt.message)
		}
		if l != (headgate.Limit{}) {
			t.Errorf("ParseLimit(%q) = %+v with an error, want the zero Limit", tt.text, l)
		}
	}
}

// An error says what was wrong without repeating all of a long input.
func TestParseLimitErrorIsShort(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	for _, text := range []string{long, long + "/s", "1/" + long, "1/s " + long, "1/s burst " + long, "1/0s" + strings.Repeat(" ", 10_000)} {
		if _, err := headgate.ParseLimit(text); err == nil || len(err.Error()) > 500 {
			t.Errorf("%.20q: error %.600v", text, err)
		}
	}
}

// What a limit says of itself is read back as the same limit.
func TestTextRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	valid := 0
	for range 50_000 {
		l := randomLimit(r)
		if l.Validate() != nil {
			continue
		}
		valid++
		got, err := headgate.ParseLimit(l.String())
		if err != nil || got != l {
			t.Fatalf("ParseLimit(%q) = %+v, %v, want %+v", l, got, err, l)
		}
	}
	if valid < 10_000 {
		t.Errorf("only %d limits were valid", valid)
	}
}

// randomLimit returns a limit without a name, often a valid one.
func randomLimit(r *rand.Rand) headgate.Limit {
	units := []time.Duration{time.Microsecond, time.Millisecond, time.Second, time.Minute, time.Hour, day, 7 * day}
	l := headgate.Limit{Algorithm: headgate.Algorithm(r.IntN(5)), Count: r.Int64N(1000), Period: units[r.IntN(len(units))]}
	if r.IntN(2) == 0 {
		l.Period *= time.Duration(1 + r.IntN(5000))
	}
	if r.IntN(4) == 0 {
		l.Count = r.Int64N(headgate.MaxCount + 2)
	}
	if l.Algorithm == headgate.TokenBucket && r.IntN(2) == 0 {
		l.Burst = r.Int64N(2000)
	}
	return l
}

func FuzzParseLimit(f *testing.F) {
	for _, seed := range []string{"100/s", "100/minute burst 20", "1000/24h fixed-window", "5/1m30s sliding-log", "1/30d", "0/ms", "1/1.5h burst 9999999999999999", "/", "9/µs"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l, err := headgate.ParseLimit(s)
		if err != nil {
			if !errors.Is(err, headgate.ErrInvalidLimit) || l != (headgate.Limit{}) {
				t.Fatalf("ParseLimit(%q) = %+v, %v", s, l, err)
			}
			return
		}
		if err := l.Validate(); err != nil {
			t.Fatalf("ParseLimit(%q) accepted %+v: %v", s, l, err)
		}
		if again, err := headgate.ParseLimit(l.String()); err != nil || again != l {
			t.Fatalf("ParseLimit(%q) = %+v, %v, want %+v of %q", l, again, err, l, s)
		}
	})
}

func TestLimitInJSON(t *testing.T) {
	type plan struct {
		Limits []headgate.Limit
		ByPath map[string]headgate.Limit
	}
	in := `{"Limits":["10/s burst 20","1000/day fixed-window"],"ByPath":{"/":"5/s sliding-log"}}`
	var p plan
	if err := json.Unmarshal([]byte(in), &p); err != nil {
		t.Fatal(err)
	}
	if p.Limits[1] != (headgate.Limit{Count: 1000, Period: day, Algorithm: headgate.FixedWindow}) {
		t.Errorf("read %+v", p.Limits[1])
	}
	if out, err := json.Marshal(p); err != nil || string(out) != in {
		t.Errorf("wrote %s, %v, want %s", out, err, in)
	}
	if err := json.Unmarshal([]byte(`{"Limits":["10/fortnight"]}`), &p); !errors.Is(err, headgate.ErrInvalidLimit) {
		t.Errorf("error %v, want ErrInvalidLimit", err)
	}
	if _, err := json.Marshal(headgate.Limit{}); !errors.Is(err, headgate.ErrInvalidLimit) {
		t.Errorf("marshalling the zero Limit: %v, want ErrInvalidLimit", err)
	}
}

func TestUnmarshalTextKeepsName(t *testing.T) {
	l := headgate.Limit{Name: "api", Count: 1, Period: time.Second}
	if err := l.UnmarshalText([]byte("nonsense")); err == nil || l.Count != 1 {
		t.Errorf("after an error: %+v, %v", l, err)
	}
	if err := l.UnmarshalText([]byte("2/h")); err != nil || l != (headgate.Limit{Name: "api", Count: 2, Period: time.Hour}) {
		t.Errorf("got %+v, %v", l, err)
	}
}

func TestAlgorithmString(t *testing.T) {
	for a, want := range map[headgate.Algorithm]string{
		headgate.TokenBucket: "token-bucket", headgate.FixedWindow: "fixed-window", headgate.AlignedWindow: "aligned-window",
		headgate.SlidingWindow: "sliding-window", headgate.SlidingLog: "sliding-log", 9: "algorithm(9)",
	} {
		if got := a.String(); got != want {
			t.Errorf("%d: %q, want %q", uint8(a), got, want)
		}
	}
}

// parse returns the limit of a text form that must be good.
func parse(t testing.TB, text string) headgate.Limit {
	t.Helper()
	l, err := headgate.ParseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
