package httplimit_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

func TestNewRefusesWhatCannotWork(t *testing.T) {
	limited := newLimiter(t, nil, headgate.Config{}, headgate.PerSecond(1))
	without := newLimiter(t, nil, headgate.Config{})
	charges := func(*http.Request) ([]headgate.Charge, error) { return nil, nil }
	cost := func(*http.Request) (int64, error) { return 1, nil }
	for name, test := range map[string]struct {
		limiter *headgate.Limiter
		cfg     httplimit.Config
	}{
		"no limiter":             {nil, httplimit.Config{Key: one}},
		"no key":                 {limited, httplimit.Config{}},
		"key and charges":        {limited, httplimit.Config{Key: one, Charges: charges}},
		"cost and charges":       {limited, httplimit.Config{Cost: cost, Charges: charges}},
		"key without limits":     {without, httplimit.Config{Key: one}},
		"unknown fields":         {limited, httplimit.Config{Key: one, Fields: 1 << 7}},
		"fields that exclude":    {limited, httplimit.Config{Key: one, Fields: httplimit.Draft11 | httplimit.Draft7}},
		"one reset in two forms": {limited, httplimit.Config{Key: one, Fields: httplimit.XRateLimit | httplimit.XRateLimitEpoch}},
	} {
		if mw, err := httplimit.New(test.limiter, test.cfg); mw != nil || !errors.Is(err, headgate.ErrInvalidConfig) {
			t.Errorf("%s: error %v, want ErrInvalidConfig", name, err)
		}
	}
	if _, err := httplimit.New(without, httplimit.Config{Charges: charges}); err != nil {
		t.Errorf("charges with a limiter that has no limits: %v", err)
	}
}

func TestAllowedThenDenied(t *testing.T) { synctest.Test(t, testAllowedThenDenied) } // time stands still

func testAllowedThenDenied(t *testing.T) {
	limit := headgate.Limit{Name: "hourly", Algorithm: headgate.FixedWindow, Count: 2, Period: time.Hour}
	calls := 0
	h := newMiddleware(t, newLimiter(t, nil, headgate.Config{}, limit), httplimit.Config{})(http.HandlerFunc(
		func(_ http.ResponseWriter, r *http.Request) {
			calls++
			d, found := httplimit.FromContext(r.Context())
			if !found || !d.Allowed || d.Limit != limit || d.Remaining != int64(2-calls) {
				t.Errorf("call %d: FromContext gives %+v, %v", calls, d, found)
			}
		}))
	for i, want := range []string{`"hourly";r=1;t=3600`, `"hourly";r=0;t=3600`} {
		w := serve(h, get())
		if w.Code != http.StatusOK {
			t.Fatalf("request %d: %d", i, w.Code)
		}
		wantFields(t, w.Header(), map[string]string{"RateLimit": want, "RateLimit-Policy": `"hourly";q=2;w=3600`, "Retry-After": "", "Cache-Control": ""})
	}
	w := serve(h, get())
	p := wantProblem(t, w, http.StatusTooManyRequests, quotaExceeded)
	if calls != 2 || !slices.Equal(p.Violated, []string{"hourly"}) {
		t.Errorf("%d calls, violated %q", calls, p.Violated)
	}
	wantFields(t, w.Header(), map[string]string{"RateLimit": `"hourly";r=0;t=3600`, "RateLimit-Policy": `"hourly";q=2;w=3600`,
		"Retry-After": "3600", "Cache-Control": "no-store"})
	if _, found := httplimit.FromContext(get().Context()); found {
		t.Error("FromContext finds a decision where there is none")
	}
}

func TestRetryAfterIsNeverZero(t *testing.T) {
	for wait, want := range map[time.Duration]string{
		0: "1", 1: "1", time.Microsecond: "1", time.Second: "1", time.Second + 1: "2", 12 * time.Second: "12",
		headgate.Never - 1: "9223372037", headgate.Never: "",
	} {
		w := serveStates(t, []headgate.State{{Limit: daily, RetryAfter: wait}})
		wantProblem(t, w, http.StatusTooManyRequests, quotaExceeded)
		wantFields(t, w.Header(), map[string]string{"Retry-After": want})
	}
}

func TestCost(t *testing.T) { synctest.Test(t, testCost) } // time stands still

func testCost(t *testing.T) {
	limit := headgate.Limit{Algorithm: headgate.FixedWindow, Count: 10, Period: time.Hour}
	h := newMiddleware(t, newLimiter(t, nil, headgate.Config{}, limit), httplimit.Config{
		Cost: func(r *http.Request) (int64, error) { return strconv.ParseInt(r.URL.Query().Get("n"), 10, 64) },
	})(ok)
	for _, step := range []struct {
		n         string
		status    int
		ratelimit string
		retry     string
	}{
		{"7", 200, `"10/hour fixed-window";r=3;t=3600`, ""},
		{"0", 200, `"10/hour fixed-window";r=3;t=3600`, ""},
		{"4", 429, `"10/hour fixed-window";r=3;t=3600`, "3600"},
		{"11", 429, `"10/hour fixed-window";r=3`, ""},
		{"3", 200, `"10/hour fixed-window";r=0;t=3600`, ""},
		{"-1", 400, "", ""},
		{"x", 400, "", ""},
	} {
		w := serve(h, httptest.NewRequest(http.MethodGet, "/?n="+step.n, nil))
		if w.Code != step.status {
			t.Errorf("cost %s: %d, want %d", step.n, w.Code, step.status)
		}
		wantFields(t, w.Header(), map[string]string{"RateLimit": step.ratelimit, "Retry-After": step.retry})
	}
}

func TestPassesUntouchedAndUncounted(t *testing.T) {
	preflight := httptest.NewRequest(http.MethodOptions, "/", nil)
	preflight.Header.Set("Origin", "https://example.com")
	preflight.Header.Set("Access-Control-Request-Method", "PUT")
	options := httptest.NewRequest(http.MethodOptions, "/", nil)
	options.Header.Set("Origin", "https://example.com")
	fake := get()
	fake.Header = preflight.Header
	for _, test := range []struct {
		name    string
		request *http.Request
		counted int
	}{
		{"preflight", preflight, 0},
		{"OPTIONS that is none", options, 1},
		{"GET with the fields of one", fake, 1},
		{"skipped", httptest.NewRequest(http.MethodGet, "/healthz", nil), 0},
		{"unlimited", httptest.NewRequest(http.MethodGet, "/unlimited", nil), 0},
	} {
		store := states(headgate.State{Limit: daily, RetryAfter: time.Minute})
		w := serve(newMiddleware(t, newLimiter(t, store, headgate.Config{}, daily), httplimit.Config{
			Skip: func(r *http.Request) bool { return r.URL.Path == "/healthz" },
			Key: func(r *http.Request) (string, error) {
				if r.URL.Path == "/unlimited" {
					return "", httplimit.ErrUnlimited
				}
				return "one", nil
			},
		})(ok), test.request)
		if len(store.taken) != test.counted || (w.Code == 200) != (test.counted == 0) {
			t.Errorf("%s: %d charges, status %d", test.name, len(store.taken), w.Code)
		}
		if test.counted == 0 && len(w.Header()) > 1 { // Content-Type of "ok" alone
			t.Errorf("%s: touched: %v", test.name, w.Header())
		}
	}
}

func TestCharges(t *testing.T) { synctest.Test(t, testCharges) } // time stands still

func testCharges(t *testing.T) {
	org := headgate.Limit{Name: "org", Algorithm: headgate.FixedWindow, Count: 5, Period: time.Hour}
	user := headgate.Limit{Name: "user", Algorithm: headgate.FixedWindow, Count: 2, Period: time.Minute}
	h := newMiddleware(t, newLimiter(t, nil, headgate.Config{}), httplimit.Config{
		Charges: func(r *http.Request) ([]headgate.Charge, error) {
			switch name := r.URL.Query().Get("user"); name {
			case "nobody":
				return nil, nil
			default:
				return []headgate.Charge{{Key: "acme", Cost: 1, Limit: org}, {Key: name, Cost: 1, Limit: user}}, nil
			}
		},
	})(ok)
	ask := func(name string) *httptest.ResponseRecorder {
		return serve(h, httptest.NewRequest(http.MethodGet, "/?user="+name, nil))
	}
	const policy = `"org";q=5;w=3600, "user";q=2;w=60`
	for i, want := range []string{`"user";r=1;t=60`, `"user";r=0;t=60`} {
		w := ask("ann")
		if w.Code != 200 {
			t.Fatalf("request %d: %d", i, w.Code)
		}
		wantFields(t, w.Header(), map[string]string{"RateLimit": want, "RateLimit-Policy": policy})
	}
	w := ask("ann")
	if p := wantProblem(t, w, 429, quotaExceeded); !slices.Equal(p.Violated, []string{"user"}) {
		t.Errorf("violated %q", p.Violated)
	}
	wantFields(t, w.Header(), map[string]string{"RateLimit": `"user";r=0;t=60`, "RateLimit-Policy": policy, "Retry-After": "60"})
	for _, name := range []string{"bob", "bob", "cid"} { // ann's denial has charged the organisation nothing
		if w := ask(name); w.Code != 200 {
			t.Fatal(w.Code)
		}
	}
	if p := wantProblem(t, ask("cid"), 429, quotaExceeded); !slices.Equal(p.Violated, []string{"org"}) {
		t.Errorf("violated %q", p.Violated)
	}
	if w := ask("nobody"); w.Code != http.StatusInternalServerError {
		t.Errorf("no charges and no error: %d, want 500: a limit silently off", w.Code)
	}
}

func TestNested(t *testing.T) {
	tenant := headgate.Limit{Name: "tenant", Count: 10, Period: time.Second}
	route := headgate.Limit{Name: "route", Algorithm: headgate.FixedWindow, Count: 8, Period: time.Minute}
	const both = `"tenant";q=10;w=1, "route";q=8;w=60`
	for name, test := range map[string]struct {
		outer, inner headgate.Decision
		want         map[string]string
	}{
		"the inner one has less left": {
			headgate.Decision{Allowed: true, Limit: tenant, Remaining: 9, ResetAfter: time.Second},
			headgate.Decision{Allowed: true, Limit: route, Remaining: 3, ResetAfter: time.Minute},
			map[string]string{"RateLimit": `"route";r=3;t=60`, "RateLimit-Policy": both, "Retry-After": ""},
		},
		"the outer one has less left": {
			headgate.Decision{Allowed: true, Limit: tenant, Remaining: 1, ResetAfter: time.Second},
			headgate.Decision{Allowed: true, Limit: route, Remaining: 3, ResetAfter: time.Minute},
			map[string]string{"RateLimit": `"tenant";r=1;t=1`, "RateLimit-Policy": both, "Retry-After": ""},
		},
		"the inner one denied": {
			headgate.Decision{Allowed: true, Limit: tenant, Remaining: 0, ResetAfter: time.Second},
			headgate.Decision{Limit: route, Remaining: 2, RetryAfter: 7 * time.Second},
			map[string]string{"RateLimit": `"route";r=2;t=7`, "RateLimit-Policy": both, "Retry-After": "7"},
		},
		"the outer one denied": {
			headgate.Decision{Limit: tenant, RetryAfter: time.Second},
			headgate.Decision{Allowed: true, Limit: route, Remaining: 3},
			map[string]string{"RateLimit": `"tenant";r=0;t=1`, "RateLimit-Policy": `"tenant";q=10;w=1`, "Retry-After": "1"},
		},
		"the same limit twice": {
			headgate.Decision{Allowed: true, Limit: tenant, Remaining: 5, ResetAfter: time.Second},
			headgate.Decision{Limit: tenant, Remaining: 0, RetryAfter: time.Second},
			map[string]string{"RateLimit": `"tenant";r=0;t=1`, "RateLimit-Policy": `"tenant";q=10;w=1`},
		},
		"the inner one was not decided": {
			headgate.Decision{Allowed: true, Limit: tenant, Remaining: 5, ResetAfter: time.Second},
			headgate.Decision{Allowed: true, Limit: route, Source: headgate.FromOpen},
			map[string]string{"RateLimit": `"tenant";r=5;t=1`, "RateLimit-Policy": `"tenant";q=10;w=1`},
		},
		"the outer one was not decided": {
			headgate.Decision{Allowed: true, Limit: tenant, Source: headgate.FromOpen},
			headgate.Decision{Allowed: true, Limit: route, Remaining: 3, ResetAfter: time.Minute},
			map[string]string{"RateLimit": `"route";r=3;t=60`, "RateLimit-Policy": `"route";q=8;w=60`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			outer := newMiddleware(t, newLimiter(t, &script{decision: test.outer}, headgate.Config{}, tenant), httplimit.Config{})
			inner := newMiddleware(t, newLimiter(t, &script{decision: test.inner}, headgate.Config{}, route), httplimit.Config{})
			w := serve(outer(inner(ok)), get())
			wantFields(t, w.Header(), test.want)
			if w.Code == 429 {
				p := wantProblem(t, w, 429, quotaExceeded)
				denied := test.outer
				if denied.Allowed {
					denied = test.inner
				}
				if !slices.Equal(p.Violated, []string{denied.Limit.Name}) {
					t.Errorf("violated %q", p.Violated)
				}
			}
		})
	}
}

func TestFieldsReplaceWhatIsThere(t *testing.T) {
	h := newMiddleware(t, newLimiter(t, states(headgate.State{Limit: daily, RetryAfter: headgate.Never}), headgate.Config{}, daily), httplimit.Config{})(ok)
	w := httptest.NewRecorder()
	for _, name := range []string{"RateLimit", "RateLimit-Policy", "Retry-After", "Cache-Control", "Content-Type", "Content-Encoding", "Content-Length", "ETag"} {
		w.Header().Add(name, "1")
		w.Header().Add(name, "2")
	}
	h.ServeHTTP(w, get())
	wantFields(t, w.Header(), map[string]string{"RateLimit": `"daily";r=0`, "RateLimit-Policy": `"daily";q=1000;w=86400`, "Retry-After": "",
		"Cache-Control": "no-store", "Content-Type": "application/problem+json", "Content-Encoding": "", "Content-Length": "", "ETag": ""})
}

func TestConcurrentRequestsPassExactly(t *testing.T) {
	limit := headgate.Limit{Algorithm: headgate.FixedWindow, Count: 50, Period: time.Hour}
	var passed, denied atomic.Int64
	h := newMiddleware(t, newLimiter(t, nil, headgate.Config{}, limit), httplimit.Config{})(http.HandlerFunc(
		func(http.ResponseWriter, *http.Request) { passed.Add(1) }))
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			if w := serve(h, get()); w.Code == http.StatusTooManyRequests {
				denied.Add(1)
			}
		})
	}
	wg.Wait()
	if passed.Load() != 50 || denied.Load() != 150 {
		t.Errorf("%d passed, %d denied, want 50 and 150", passed.Load(), denied.Load())
	}
}
