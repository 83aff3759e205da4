package httplimit_test

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

// instant is when the scripted decisions are made: 1,800,000,000 s and a half after the Unix epoch.
var instant = time.Unix(1_800_000_000, 500_000_000)

var (
	burst = headgate.Limit{Name: "burst", Count: 10, Period: time.Second, Burst: 20}
	daily = headgate.Limit{Name: "daily", Algorithm: headgate.FixedWindow, Count: 1000, Period: 24 * time.Hour}
)

func TestFieldsByDialect(t *testing.T) {
	allowed := []headgate.State{
		{Limit: burst, Allowed: true, Remaining: 12, ResetAfter: 800 * time.Millisecond},
		{Limit: daily, Allowed: true, Remaining: 900, ResetAfter: time.Hour},
	}
	denied := []headgate.State{
		{Limit: burst, Allowed: true, Remaining: 20},
		{Limit: daily, Remaining: 3, RetryAfter: 90*time.Second + 1, ResetAfter: time.Hour},
	}
	never := []headgate.State{
		{Limit: burst, Allowed: true, Remaining: 20},
		{Limit: daily, Remaining: 900, RetryAfter: headgate.Never, ResetAfter: 2 * time.Hour},
	}
	const policy, policy7 = `"burst";q=20;w=2, "daily";q=1000;w=86400`, `20;w=2, 1000;w=86400`
	none := map[string]string{"RateLimit": "", "RateLimit-Policy": "", "RateLimit-Limit": "", "RateLimit-Remaining": "",
		"RateLimit-Reset": "", "X-RateLimit-Limit": "", "X-RateLimit-Remaining": "", "X-RateLimit-Reset": ""}
	tests := []struct {
		name   string
		fields httplimit.Fields
		states []headgate.State
		want   map[string]string
	}{
		{"default allowed", 0, allowed, map[string]string{"RateLimit-Policy": policy, "RateLimit": `"burst";r=12;t=1`, "Retry-After": ""}},
		{"default denied", 0, denied, map[string]string{"RateLimit-Policy": policy, "RateLimit": `"daily";r=3;t=91`, "Retry-After": "91"}},
		{"default never", 0, never, map[string]string{"RateLimit-Policy": policy, "RateLimit": `"daily";r=900`, "Retry-After": ""}},
		{"draft 7 allowed", httplimit.Draft7, allowed, map[string]string{"RateLimit-Policy": policy7, "RateLimit": `limit=20, remaining=12, reset=1`}},
		{"draft 7 denied", httplimit.Draft7, denied, map[string]string{"RateLimit-Policy": policy7, "RateLimit": `limit=1000, remaining=3, reset=91`}},
		{"draft 7 never", httplimit.Draft7, never, map[string]string{"RateLimit": `limit=1000, remaining=900, reset=7200`, "Retry-After": ""}},
		{"draft 6 allowed", httplimit.Draft6, allowed, map[string]string{"RateLimit-Limit": "20", "RateLimit-Remaining": "12", "RateLimit-Reset": "1", "RateLimit": "", "X-RateLimit-Limit": ""}},
		{"draft 6 denied", httplimit.Draft6, denied, map[string]string{"RateLimit-Limit": "1000", "RateLimit-Remaining": "3", "RateLimit-Reset": "91", "Retry-After": "91"}},
		{"x delta allowed", httplimit.XRateLimit, allowed, map[string]string{"X-RateLimit-Limit": "20", "X-RateLimit-Remaining": "12", "X-RateLimit-Reset": "1", "RateLimit": ""}},
		{"x delta denied", httplimit.XRateLimit, denied, map[string]string{"X-RateLimit-Limit": "1000", "X-RateLimit-Remaining": "3", "X-RateLimit-Reset": "91"}},
		{"x epoch allowed", httplimit.XRateLimitEpoch, allowed, map[string]string{"X-RateLimit-Limit": "20", "X-RateLimit-Reset": "1800000002"}},
		{"x epoch denied", httplimit.XRateLimitEpoch, denied, map[string]string{"X-RateLimit-Limit": "1000", "X-RateLimit-Reset": "1800000091"}},
		{"x epoch never", httplimit.XRateLimitEpoch, never, map[string]string{"X-RateLimit-Reset": "1800007201"}},
		{"several", httplimit.Draft11 | httplimit.Draft6 | httplimit.XRateLimit, denied, map[string]string{"RateLimit": `"daily";r=3;t=91`,
			"RateLimit-Policy": policy, "RateLimit-Reset": "91", "X-RateLimit-Reset": "91", "Retry-After": "91", "Cache-Control": "no-store"}},
		{"none allowed", httplimit.NoFields, allowed, none},
		{"none denied", httplimit.NoFields, denied, map[string]string{"RateLimit": "", "RateLimit-Policy": "", "Retry-After": "91", "Cache-Control": "no-store"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			limiter := newLimiter(t, states(test.states...), headgate.Config{}, burst, daily)
			w := serve(newMiddleware(t, limiter, httplimit.Config{Fields: test.fields})(ok), get())
			wantFields(t, w.Header(), test.want)
		})
	}
}

func TestPolicyField(t *testing.T) {
	unnamed := func(text string) headgate.Limit {
		l, err := headgate.ParseLimit(text)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	named := func(name, text string) headgate.Limit {
		l := unnamed(text)
		l.Name = name
		return l
	}
	tests := []struct {
		name   string
		limits []headgate.Limit
		want   string
	}{
		{"text form", []headgate.Limit{unnamed("100/s")}, `"100/s";q=100;w=1`},
		{"window", []headgate.Limit{unnamed("5/90s sliding-log")}, `"5/1m30s sliding-log";q=5;w=90`},
		{"below a second", []headgate.Limit{unnamed("5/100ms")}, `"5/100ms";q=5;w=1`},
		{"a second and a half", []headgate.Limit{unnamed("5/1500ms")}, `"5/1.5s";q=5;w=2`},
		{"bucket that fills sooner", []headgate.Limit{unnamed("100/minute burst 20")}, `"100/minute burst 20";q=20;w=12`},
		{"bucket that fills later", []headgate.Limit{unnamed("5/s burst 11")}, `"5/s burst 11";q=11;w=3`},
		{"nothing passes", []headgate.Limit{unnamed("0/s")}, `"0/s";q=0;w=1`},
		{"16 digits", []headgate.Limit{unnamed("1000000000000000/s")}, `"1000000000000000/s";q=999999999999999;w=1`},
		{"quote and backslash", []headgate.Limit{named(`a"b\c`, "1/s")}, `"a\"b\\c";q=1;w=1`},
		{"one limit for two keys", []headgate.Limit{unnamed("1/s"), unnamed("1/s")}, `"1/s";q=1;w=1`},
		{"one name for two limits", []headgate.Limit{named("x", "1/s"), named("x", "2/s fixed-window"), named("x-2", "3/s")},
			`"x";q=1;w=1, "x-2";q=2;w=1, "x-2-2";q=3;w=1`},
		{"a name that looks like a text form", []headgate.Limit{unnamed("1/s"), named("1/s", "2/s")}, `"1/s";q=1;w=1, "1/s-2";q=2;w=1`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			list := make([]headgate.State, len(test.limits))
			for i, l := range test.limits {
				list[i] = headgate.State{Limit: l, Allowed: true, Remaining: l.Count}
			}
			h := serveStates(t, list).Header()
			wantFields(t, h, map[string]string{"RateLimit-Policy": test.want})
			wantConsistent(t, h.Get("RateLimit-Policy"), h.Get("RateLimit"))
		})
	}
}

// No number is longer than the 15 digits that an Integer of a structured field may have.
func TestNumbersFitStructuredFields(t *testing.T) {
	const most = "999999999999999"
	limit := headgate.Limit{Name: "huge", Count: headgate.MaxCount, Period: time.Second}
	list := []headgate.State{{Limit: limit, Allowed: true, Remaining: headgate.MaxCount}}
	for fields, want := range map[httplimit.Fields]map[string]string{
		httplimit.Draft11:    {"RateLimit": `"huge";r=` + most + `;t=0`, "RateLimit-Policy": `"huge";q=` + most + `;w=1`},
		httplimit.Draft7:     {"RateLimit": "limit=" + most + ", remaining=" + most + ", reset=0", "RateLimit-Policy": most + ";w=1"},
		httplimit.Draft6:     {"RateLimit-Limit": most, "RateLimit-Remaining": most},
		httplimit.XRateLimit: {"X-RateLimit-Limit": most, "X-RateLimit-Remaining": most},
	} {
		limiter := newLimiter(t, states(list...), headgate.Config{}, limit)
		wantFields(t, serve(newMiddleware(t, limiter, httplimit.Config{Fields: fields})(ok), get()).Header(), want)
	}
}

// serveStates answers one request whose charges were found to be in these states.
func serveStates(tb testing.TB, list []headgate.State) *httptest.ResponseRecorder {
	limiter := newLimiter(tb, states(list...), headgate.Config{}, headgate.PerSecond(1))
	return serve(newMiddleware(tb, limiter, httplimit.Config{})(ok), get())
}

// wantConsistent checks that both fields parse, that no two policies have one name, and that the limit is one of the policies.
func wantConsistent(t *testing.T, policy, limit string) {
	t.Helper()
	policies, err := parseList(policy)
	if err != nil {
		t.Fatalf("RateLimit-Policy %q: %v", policy, err)
	}
	limits, err := parseList(limit)
	if err != nil || len(limits) != 1 {
		t.Fatalf("RateLimit %q: %d members, %v", limit, len(limits), err)
	}
	seen := map[string]bool{}
	for _, p := range policies {
		if seen[p.name] {
			t.Errorf("RateLimit-Policy %q: two policies %q", policy, p.name)
		}
		seen[p.name] = true
		if p.params["w"] < 1 {
			t.Errorf("RateLimit-Policy %q: a window of %d", policy, p.params["w"])
		}
	}
	if !seen[limits[0].name] {
		t.Errorf("RateLimit %q is none of %q", limit, policy)
	}
}

// FuzzPolicyField: whatever a limit's name and numbers, the fields are well-formed, and the body is JSON.
func FuzzPolicyField(f *testing.F) {
	f.Add("burst", "daily", int64(10), int64(time.Second), int64(20), int64(3))
	f.Add(`a"`, `a\"`, int64(1e15), int64(1), int64(-1), int64(-1))
	f.Add("a\x00", "a%00", int64(-1), int64(-1), int64(1e18), int64(1e18))
	f.Add("", "0/0s", int64(0), int64(0), int64(0), int64(0))
	f.Add("é\xff", "\n", int64(1), int64(1<<62), int64(1<<62), int64(1<<62))
	f.Fuzz(func(t *testing.T, a, b string, count, period, capacity, remaining int64) {
		first := headgate.Limit{Name: a, Count: count, Period: time.Duration(period), Burst: capacity}
		second := headgate.Limit{Name: b, Count: count, Period: time.Duration(period), Burst: capacity}
		third := headgate.Limit{Name: a, Algorithm: headgate.SlidingLog, Count: count, Period: time.Duration(period)}
		w := serveStates(t, []headgate.State{
			{Limit: first, Remaining: remaining, RetryAfter: time.Duration(period)},
			{Limit: second, Remaining: remaining, RetryAfter: time.Duration(capacity)},
			{Limit: third, Allowed: true, Remaining: remaining},
		})
		wantConsistent(t, w.Header().Get("RateLimit-Policy"), w.Header().Get("RateLimit"))
		wantProblem(t, w, 429, quotaExceeded)
	})
}

func TestParseFields(t *testing.T) {
	for text, want := range map[string]httplimit.Fields{
		"":                               0,
		"none":                           httplimit.NoFields,
		"draft-11":                       httplimit.Draft11,
		"draft-7 x-ratelimit-epoch":      httplimit.Draft7 | httplimit.XRateLimitEpoch,
		" draft-11  draft-6 x-ratelimit": httplimit.Draft11 | httplimit.Draft6 | httplimit.XRateLimit,
	} {
		got, err := httplimit.ParseFields(text)
		if err != nil || got != want {
			t.Errorf("ParseFields(%q) = %v, %v, want %v", text, got, err, want)
		}
		if got.String() != strings.Join(strings.Fields(text), " ") {
			t.Errorf("String of %q is %q", text, got)
		}
	}
	for _, text := range []string{"draft-8", "draft-11 draft-7", "x-ratelimit x-ratelimit-epoch", "none draft-11", "Draft-11"} {
		if _, err := httplimit.ParseFields(text); !errors.Is(err, headgate.ErrInvalidConfig) {
			t.Errorf("ParseFields(%q): %v, want ErrInvalidConfig", text, err)
		}
	}
}
