package admin_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/admin"
)

// decision is what a program reads of an answer.
type decision struct {
	Allowed      bool
	Name, Source string
	Limit, At    *string
	Remaining    *int64
	RetryAfter   *int64 `json:"retry_after"`
	RetryAfterMS *int64 `json:"retry_after_ms"`
	ResetAfterMS *int64 `json:"reset_after_ms"`
	Never        bool
	States       []decision
}

func (s *service) decision(t *testing.T, path, body string) decision {
	t.Helper()
	a := s.post(t, path, body)
	if a.StatusCode != 200 {
		t.Fatalf("%s %s: %d %s", path, body, a.StatusCode, a.body)
	}
	var d decision
	a.decode(t, &d)
	return d
}

const (
	two  = `{"charges":[{"key":"k","limit":"2/hour fixed-window","name":"api"}]}`
	pair = `{"charges":[{"key":"k","limit":"2/hour fixed-window","name":"api"},{"key":"org","limit":"9/hour","cost":3}]}`
)

// A story of one key, step by step.
func TestStory(t *testing.T) {
	s := start(t, file, nil)
	wantRemaining := func(path, body string, allowed bool, remaining int64) decision {
		t.Helper()
		d := s.decision(t, path, body)
		if d.Allowed != allowed || *d.Remaining != remaining || d.Source != "store" || d.At == nil {
			t.Errorf("%s %s: %+v with %d left, want allowed %v and %d left", path, body, d, *d.Remaining, allowed, remaining)
		}
		return d
	}
	d := wantRemaining("/v1/take", two, true, 1)
	if *d.Limit != "2/hour fixed-window" || d.Name != "api" || *d.RetryAfterMS != 0 || *d.RetryAfter != 0 || *d.ResetAfterMS != 3600_000 || len(d.States) != 1 {
		t.Errorf("first: %+v", d)
	}
	wantRemaining("/v1/peek", two, true, 1)
	last := wantRemaining("/v1/take", two, true, 0)
	d = wantRemaining("/v1/take", two, false, 0)
	if d.Never || *d.RetryAfterMS <= 0 || *d.RetryAfterMS > 3600_000 || *d.RetryAfter != (*d.RetryAfterMS+999)/1000 {
		t.Errorf("denied: %+v, retry after %d ms, %d s", d, *d.RetryAfterMS, *d.RetryAfter)
	}
	// Both or none: what the first denies, the second is not charged for.
	d = wantRemaining("/v1/take", pair, false, 0)
	if len(d.States) != 2 || d.States[0].Allowed || !d.States[1].Allowed || *d.States[1].Remaining != 9 {
		t.Errorf("states %+v", d.States)
	}
	refund := strings.TrimSuffix(two, "}") + `,"taken_at":"` + *last.At + `"}`
	if a := s.post(t, "/v1/refund", refund); a.StatusCode != 200 || a.body != "{\"done\":true}\n" {
		t.Errorf("refund: %d %s", a.StatusCode, a.body)
	}
	wantRemaining("/v1/peek", two, true, 1)
	if a := s.post(t, "/v1/reset", two); a.StatusCode != 200 {
		t.Errorf("reset: %d %s", a.StatusCode, a.body)
	}
	wantRemaining("/v1/peek", two, true, 2)
	wantRemaining("/v1/take", strings.Replace(two, `"limit"`, `"cost":0,"limit"`, 1), true, 2)
	d = wantRemaining("/v1/take", strings.Replace(two, `"limit"`, `"cost":3,"limit"`, 1), false, 2)
	if !d.Never || d.RetryAfter != nil || d.RetryAfterMS != nil {
		t.Errorf("above the capacity: %+v, want never", d)
	}
}

// A refund into a window that has ended leaves the one under way alone.
func TestRefundOfAnotherWindow(t *testing.T) {
	s := start(t, file, nil)
	s.decision(t, "/v1/take", two)
	late := strings.TrimSuffix(two, "}") + `,"taken_at":"2020-01-01T00:00:00.5+01:00"}`
	if a := s.post(t, "/v1/refund", late); a.StatusCode != 200 {
		t.Errorf("refund: %d %s", a.StatusCode, a.body)
	}
	if d := s.decision(t, "/v1/peek", two); *d.Remaining != 1 {
		t.Errorf("%d left, want 1", *d.Remaining)
	}
}

// What is taken for a tenant on a route is taken of the gateway's budgets, and the other way round.
func TestTenants(t *testing.T) {
	s := start(t, file, nil)
	const acme = `{"tenant":"acme","route":"/api/only/x"}`
	d := s.decision(t, "/v1/take", acme)
	if !d.Allowed || len(d.States) != 3 || d.Name != "/api/only tenant/hour" || *d.Remaining != 1 {
		t.Errorf("%+v, want three budgets, and that of the route with 1 left", d)
	}
	d = s.decision(t, "/v1/take", `{"tenant":"acme","route":"/api/other?x=1","cost":2}`)
	if !d.Allowed || d.Name != "pro/hour" || *d.Remaining != 0 {
		t.Errorf("%+v, want nothing left of the plan", d)
	}
	auth := s.send(t, "GET", "/v1/forward-auth", "", header("X-Forwarded-Uri", "/api"), header("X-API-Key", "acme-key"))
	if auth.StatusCode != 429 {
		t.Errorf("the gateway's own decision: %d, want 429", auth.StatusCode)
	}
	if d := s.decision(t, "/v1/peek", acme); !d.Allowed || *d.Remaining != 0 || len(d.States) != 3 {
		t.Errorf("peek: %+v", d)
	}
	if a := s.post(t, "/v1/refund", `{"tenant":"acme","route":"/api"}`); a.StatusCode != 200 {
		t.Errorf("refund: %d %s", a.StatusCode, a.body)
	}
	if d := s.decision(t, "/v1/take", `{"tenant":"acme","route":"/api"}`); !d.Allowed {
		t.Errorf("after the refund: %+v", d)
	}
	// A reset is about the tenant. What all callers of the route have used together stays.
	if a := s.post(t, "/v1/reset", acme); a.StatusCode != 200 {
		t.Errorf("reset: %d %s", a.StatusCode, a.body)
	}
	d = s.decision(t, "/v1/peek", acme)
	if got := [3]int64{*d.States[0].Remaining, *d.States[1].Remaining, *d.States[2].Remaining}; got != [3]int64{3, 2, 99} {
		t.Errorf("after the reset %v are left, want 3, 2, 99", got)
	}
	d = s.decision(t, "/v1/take", `{"tenant":"globex","route":"/api/free"}`)
	if !d.Allowed || d.Source != "unlimited" || d.Limit != nil || d.Remaining != nil || len(d.States) != 0 {
		t.Errorf("unlimited: %+v", d)
	}
	if a := s.post(t, "/v1/take", `{"tenant":"globex","route":"/api/only"}`); a.StatusCode != 403 {
		t.Errorf("a tenant who may not call: %d %s", a.StatusCode, a.body)
	}
}

func TestAnonymousTenant(t *testing.T) {
	s := start(t, strings.NewReplacer("plans:", "identity: {anonymous: share, anonymous_plan: free}\nplans:",
		"path: /api/free", "total: [\"1/s\"], path: /api/free", "path: /api,", "path: /,").Replace(file), nil)
	const anybody = `{"route":"/"}`
	if d := s.decision(t, "/v1/take", anybody); !d.Allowed || d.Name != "free/hour" {
		t.Errorf("first: %+v", d)
	}
	if d := s.decision(t, "/v1/take", anybody); d.Allowed {
		t.Errorf("second: %+v, want denied", d)
	}
}

// Each of these is refused with a problem that says where the fault is.
func TestFaults(t *testing.T) {
	s := start(t, file, nil)
	many := `{"charges":[` + strings.Repeat(`{"key":"k","limit":"1/s"},`, headgate.MaxCharges) + `{"key":"k","limit":"1/s"}]}`
	tests := []struct{ path, body, field, detail string }{
		{"take", ``, "", "not JSON"},
		{"take", `{"charges":[`, "", "not JSON"},
		{"take", two + two, "", "not JSON"},
		{"take", "\xff", "", "UTF-8"},
		{"take", `[]`, "", "an array, want an object"},
		{"take", `null`, "", "null, want an object"},
		{"take", `{}`, "charges", "is missing"},
		{"take", `{"charges":[]}`, "charges", "is empty"},
		{"take", `{"charges":{}}`, "charges", "is an object, want an array"},
		{"take", `{"charges":[{"key":"k","limit":"1/s","kost":2}]}`, "charges[0].kost", "is not known, want key, limit, name, cost"},
		{"take", `{"charges":[{"key":"k","limit":"1/s"}],"wait":1}`, "wait", "is not known"},
		{"take", `{"Charges":[{"key":"k","limit":"1/s"}]}`, "Charges", "is not known"},
		{"take", `{"charges":[{"key":"k","limit":"1/s"},{"key":"k","key":"j","limit":"1/s"}]}`, "charges[1].key", "comes twice"},
		{"take", `{"charges":[{"limit":"1/s"}]}`, "charges[0].key", "is missing"},
		{"take", `{"charges":[{"key":"k"}]}`, "charges[0].limit", "is missing"},
		{"take", `{"charges":[{"key":7,"limit":"1/s"}]}`, "charges[0].key", "is the number 7, want a string"},
		{"take", `{"charges":[{"key":"","limit":"1/s"}]}`, "charges[0]", "empty key"},
		{"take", `{"charges":[{"key":"\ud800","limit":"1/s"}]}`, "charges[0].key", "surrogate"},
		{"take", `{"charges":[{"key":"` + strings.Repeat("k", 1025) + `","limit":"1/s"}]}`, "charges[0]", "1025 bytes"},
		{"take", `{"charges":[{"key":"k","limit":"10/fortnight"}]}`, "charges[0].limit", "fortnight"},
		{"take", `{"charges":[{"key":"k","limit":"1/s","cost":1.5}]}`, "charges[0].cost", "1.5, want a whole number"},
		{"take", `{"charges":[{"key":"k","limit":"1/s","cost":1e3}]}`, "charges[0].cost", "1e3, want a whole number"},
		{"take", `{"charges":[{"key":"k","limit":"1/s","cost":9223372036854775808}]}`, "charges[0].cost", "fits 64 bits"},
		{"take", `{"charges":[{"key":"k","limit":"1/s","cost":-1}]}`, "charges[0].cost", "below 0"},
		{"take", `{"charges":[{"key":"k","limit":"1/s","cost":"1"}]}`, "charges[0].cost", "is a string, want a whole number"},
		{"take", `{"charges":[{"key":"k","limit":"1/s","name":"\u00e9"}]}`, "charges[0]", "printable ASCII"},
		{"take", `{"charges":[{"key":"k","limit":"1/s","name":"a"},{"key":"k","limit":"2/s","name":"a"}]}`, "charges", "different numbers"},
		{"take", many, "charges[128]", "at most 128"},
		{"take", `{"charges":[{"key":"k","limit":"1/s"}],"on_store_error":"shut"}`, "on_store_error", "closed, open, local"},
		{"take", `{"charges":[{"key":"k","limit":"1/s"}],"cost":1}`, "cost", "in each of them"},
		{"take", `{"charges":[{"key":"k","limit":"1/s"}],"tenant":"acme"}`, "charges", "either"},
		{"take", `{"charges":[{"key":"k","limit":"1/s"}],"taken_at":"2026-01-31T12:00:00Z"}`, "taken_at", "is not known"},
		{"take", `{"tenant":"acme"}`, "route", "is missing"},
		{"take", `{"tenant":"nobody","route":"/api"}`, "tenant", "is none"},
		{"take", `{"tenant":"*","route":"/api"}`, "tenant", "is none"},
		{"take", `{"route":"/api"}`, "tenant", "anonymous callers are denied"},
		{"take", `{"tenant":"acme","route":"/"}`, "route", "no route"},
		{"take", `{"tenant":"acme","route":"/api/x/../only"}`, "route", "one way only"},
		{"peek", `{"charges":[{"key":"k","limit":"1/s","cost":1}]}`, "charges[0].cost", "is not known"},
		{"peek", `{"tenant":"acme","route":"/api","cost":1}`, "cost", "is not known"},
		{"refund", `{"charges":[{"key":"k","limit":"1/s"}],"taken_at":null}`, "taken_at", "no store made that decision"},
		{"refund", `{"charges":[{"key":"k","limit":"1/s"}],"taken_at":"yesterday"}`, "taken_at", "is not an instant"},
		{"refund", `{"charges":[{"key":"k","limit":"1/s"}],"taken_at":5}`, "taken_at", "is the number 5"},
		{"refund", `{"charges":[{"key":"k","limit":"1/s"}],"on_store_error":"open"}`, "on_store_error", "is not known"},
		{"reset", `{"charges":[{"key":"k","limit":"1/s","cost":1}]}`, "charges[0].cost", "is not known"},
	}
	for _, tt := range tests {
		a := s.post(t, "/v1/"+tt.path, tt.body)
		if a.StatusCode != 400 {
			t.Errorf("%s %.80s: %d %s, want 400", tt.path, tt.body, a.StatusCode, a.body)
			continue
		}
		wantProblem(t, a, 400)
		var p struct{ Field, Detail string }
		a.decode(t, &p)
		if p.Field != tt.field || !strings.Contains(p.Detail, tt.detail) {
			t.Errorf("%s %.80s: field %q, detail %q; want %q and %q", tt.path, tt.body, p.Field, p.Detail, tt.field, tt.detail)
		}
	}
	if d := s.decision(t, "/v1/peek", `{"charges":[{"key":"k","limit":"1/s"}]}`); *d.Remaining != 1 {
		t.Errorf("a request that was refused took something: %+v", d)
	}
}

func TestOtherRefusals(t *testing.T) {
	s := start(t, file, nil)
	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1", "application/json;;"} {
		wantProblem(t, s.post(t, "/v1/take", two, header("Content-Type", kind)), 415)
	}
	if a := s.post(t, "/v1/take", two, header("Content-Type", "Application/JSON; charset=UTF-8")); a.StatusCode != 200 {
		t.Errorf("application/json; charset=UTF-8: %d %s", a.StatusCode, a.body)
	}
	wantProblem(t, s.post(t, "/v1/take", two+strings.Repeat(" ", 1<<20)), 413)
	for _, method := range []string{"GET", "PUT", "DELETE", "OPTIONS"} {
		a := s.send(t, method, "/v1/take", "")
		wantProblem(t, a, 405)
		if a.Header.Get("Allow") != "POST" {
			t.Errorf("Allow %q", a.Header.Get("Allow"))
		}
	}
	wantProblem(t, s.send(t, "POST", "/v1/other", "{}"), 404)
}

func TestTokens(t *testing.T) {
	guarded := strings.Replace(file, "plans:", "api: {token_sha256: [GLOBEX, TOKEN]}\nplans:", 1)
	for _, loopback := range []bool{true, false} {
		s := start(t, guarded, nil, func(o *admin.APIOptions) { o.Loopback = loopback })
		if !s.api.Guarded() || s.api.Off() {
			t.Errorf("guarded %v, off %v", s.api.Guarded(), s.api.Off())
		}
		tests := []struct {
			values []string
			status int
		}{
			{nil, 401}, {[]string{"secret-token"}, 401}, {[]string{"Basic secret-token"}, 401}, {[]string{"Bearer"}, 401}, {[]string{"Bearer "}, 401},
			{[]string{"Bearer secret-toke"}, 401}, {[]string{"Bearer acme-key"}, 401}, {[]string{"Bearer secret-token", "Bearer secret-token"}, 401},
			{[]string{"Bearer secret-token"}, 200}, {[]string{"bearer  secret-token"}, 200}, {[]string{"Bearer globex-key"}, 200},
		}
		for _, tt := range tests {
			a := s.post(t, "/v1/peek", two, func(r *http.Request) { r.Header["Authorization"] = tt.values })
			if a.StatusCode != tt.status {
				t.Errorf("%q: %d %s, want %d", tt.values, a.StatusCode, a.body, tt.status)
			}
			if tt.status == 401 {
				wantProblem(t, a, 401)
				if !strings.HasPrefix(a.Header.Get("WWW-Authenticate"), "Bearer ") || strings.Contains(a.body, "secret") {
					t.Errorf("%q: %v %s, want a challenge and no token", tt.values, a.Header, a.body)
				}
			}
		}
	}
}

// Without a token the API is open to this host alone. A new configuration holds from the next request on.
func TestNoToken(t *testing.T) {
	s := start(t, file, nil, func(o *admin.APIOptions) { o.Loopback = false })
	wantProblem(t, s.post(t, "/v1/take", two), 403)
	if a := s.send(t, "GET", "/v1/forward-auth", "", header("X-Forwarded-Uri", "/api"), header("X-API-Key", "acme-key")); a.StatusCode != 200 {
		t.Errorf("forward-auth: %d", a.StatusCode)
	}
	if !s.api.Off() {
		t.Error("the API does not say that it is off")
	}
	s.api.Apply(parse(t, strings.Replace(file, "plans:", "api: {token_sha256: TOKEN}\nplans:", 1)))
	wantProblem(t, s.post(t, "/v1/take", two), 401)
	if a := s.post(t, "/v1/take", two, header("Authorization", "Bearer secret-token")); a.StatusCode != 200 {
		t.Errorf("after the change: %d %s", a.StatusCode, a.body)
	}
}

// away is a store that does not answer.
type away struct{}

var errAway = errors.New("away")

func (away) Take(context.Context, headgate.Charge, ...headgate.Charge) (headgate.Decision, error) {
	return headgate.Decision{}, &headgate.StoreError{Op: "take", Err: errAway}
}
func (away) Refund(context.Context, headgate.Charge, ...headgate.Charge) error { return errAway }
func (away) Reset(context.Context, headgate.Charge, ...headgate.Charge) error  { return errAway }

func TestStoreAway(t *testing.T) {
	const shared = "store: {redis: {url: \"redis://127.0.0.1:1\"}}\n"
	routes := strings.NewReplacer(`upstream: "http://127.0.0.1:1"}`, `upstream: "http://127.0.0.1:1", on_store_error: local}`,
		"tenants: [acme],", "tenants: [acme], on_store_error: closed,", "plan: false", "plan: false, on_store_error: open, total: [\"1/s\"]")
	s := start(t, shared+routes.Replace(file), away{})
	for _, path := range []string{"/v1/take", "/v1/peek", "/v1/refund", "/v1/reset"} {
		a := s.post(t, path, two)
		wantProblem(t, a, 503)
		if a.Header.Get("Retry-After") != "1" {
			t.Errorf("%s: Retry-After %q, want 1", path, a.Header.Get("Retry-After"))
		}
	}
	with := func(mode string) string { return strings.TrimSuffix(two, "}") + `,"on_store_error":"` + mode + `"}` }
	d := s.decision(t, "/v1/take", with("open"))
	if !d.Allowed || d.Source != "open" || d.Limit != nil || d.Remaining != nil || d.At != nil || len(d.States) != 0 {
		t.Errorf("open: %+v", d)
	}
	for i, want := range []bool{true, true, false} {
		if d := s.decision(t, "/v1/take", with("local")); d.Allowed != want || d.Source != "local" || d.At != nil {
			t.Errorf("local, take %d: %+v", i+1, d)
		}
	}
	wantProblem(t, s.post(t, "/v1/take", with("closed")), 503)
	// With a route it is the route's mode; and its budgets in process are those of the gateway.
	wantProblem(t, s.post(t, "/v1/take", `{"tenant":"acme","route":"/api/only"}`), 503)
	if d := s.decision(t, "/v1/take", `{"tenant":"acme","route":"/api/free"}`); d.Source != "open" {
		t.Errorf("a route that is open: %+v", d)
	}
	if d := s.decision(t, "/v1/take", `{"tenant":"globex","route":"/api"}`); !d.Allowed || d.Source != "local" {
		t.Errorf("a route that is local: %+v", d)
	}
	if a := s.send(t, "GET", "/v1/forward-auth", "", header("X-Forwarded-Uri", "/api"), header("X-API-Key", "globex-key")); a.StatusCode != 429 {
		t.Errorf("forward-auth after the one that is left: %d, want 429", a.StatusCode)
	}
	s.api.Apply(parse(t, strings.Replace(file, "plans:", "api: {on_store_error: open}\nplans:", 1)))
	if d := s.decision(t, "/v1/take", two); d.Source != "open" {
		t.Errorf("the configuration says open: %+v", d)
	}
}
