package httplimit_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

const (
	quotaExceeded   = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	reducedCapacity = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
	blank           = "about:blank"
)

type problem struct {
	Type     string   `json:"type"`
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Detail   string   `json:"detail"`
	Violated []string `json:"violated-policies"`
}

// wantProblem checks that the response is a problem document, once, and not cacheable.
func wantProblem(t *testing.T, w *httptest.ResponseRecorder, status int, kind string) problem {
	t.Helper()
	var p problem
	d := json.NewDecoder(strings.NewReader(w.Body.String()))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil || d.More() {
		t.Fatalf("body %q: %v", w.Body, err)
	}
	if w.Code != status || p.Status != status || p.Type != kind || p.Title == "" || p.Detail == "" {
		t.Errorf("status %d, problem %+v, want %d %s", w.Code, p, status, kind)
	}
	wantFields(t, w.Header(), map[string]string{"Content-Type": "application/problem+json", "Cache-Control": "no-store"})
	return p
}

func TestStoreAway(t *testing.T) {
	down := &script{err: errors.New("connection refused")}
	none := map[string]string{"RateLimit": "", "RateLimit-Policy": "", "Retry-After": ""}
	t.Run("closed", func(t *testing.T) {
		w := serve(newMiddleware(t, newLimiter(t, down, headgate.Config{}, daily), httplimit.Config{})(ok), get())
		wantProblem(t, w, http.StatusServiceUnavailable, reducedCapacity)
		wantFields(t, w.Header(), map[string]string{"RateLimit": "", "RateLimit-Policy": "", "Retry-After": "1"})
	})
	t.Run("closed, said by a decision alone", func(t *testing.T) {
		store := &script{decision: headgate.Decision{Limit: daily, Source: headgate.FromClosed, RetryAfter: time.Second}}
		w := serve(newMiddleware(t, newLimiter(t, store, headgate.Config{}, daily), httplimit.Config{})(ok), get())
		wantProblem(t, w, http.StatusServiceUnavailable, reducedCapacity)
	})
	t.Run("closed memory", func(t *testing.T) {
		memory, err := headgate.NewMemory(headgate.MemoryConfig{})
		if err != nil {
			t.Fatal(err)
		}
		limiter := newLimiter(t, memory, headgate.Config{}, daily)
		_ = memory.Close()
		wantProblem(t, serve(newMiddleware(t, limiter, httplimit.Config{})(ok), get()), http.StatusServiceUnavailable, reducedCapacity)
	})
	t.Run("open", func(t *testing.T) {
		limiter := newLimiter(t, down, headgate.Config{OnStoreError: headgate.FailOpen}, daily)
		w := serve(newMiddleware(t, limiter, httplimit.Config{})(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if d, _ := httplimit.FromContext(r.Context()); d.Source != headgate.FromOpen {
				t.Errorf("source %v", d.Source)
			}
		})), get())
		if w.Code != 200 {
			t.Error(w.Code)
		}
		wantFields(t, w.Header(), none)
	})
	t.Run("local", func(t *testing.T) { synctest.Test(t, storeAwayLocal) })
}

func storeAwayLocal(t *testing.T) {
	down := &script{err: errors.New("connection refused")}
	limiter := newLimiter(t, down, headgate.Config{OnStoreError: headgate.FailLocal, Replicas: func() int { return 500 }}, daily)
	h := newMiddleware(t, limiter, httplimit.Config{})(ok)
	for i, want := range []string{`"daily";r=1;t=86400`, `"daily";r=0;t=86400`, `"daily";r=0;t=86400`} {
		w := serve(h, get())
		if (w.Code == 200) != (i < 2) {
			t.Errorf("request %d: %d", i, w.Code)
		}
		wantFields(t, w.Header(), map[string]string{"RateLimit": want, "RateLimit-Policy": `"daily";q=2;w=86400`})
	}
}

func TestErrors(t *testing.T) {
	long := strings.Repeat("k", headgate.MaxKey+1)
	for _, test := range []struct {
		name   string
		key    string
		err    error
		status int
		kind   string
		detail string // "" = any
		auth   string
	}{
		{"any", "", errors.New("secret"), 400, blank, "", ""},
		{"empty key", "", nil, 400, blank, "", ""},
		{"key too long", long, nil, 400, blank, "", ""},
		{"401", "", &httplimit.StatusError{Status: 401, Detail: `who are "you"?`, Challenge: `Bearer realm="api"`, Err: errors.New("secret")}, 401, blank, `who are "you"?`, `Bearer realm="api"`},
		{"403 wrapped", "", errors.Join(errors.New("secret"), &httplimit.StatusError{Status: 403}), 403, blank, "", ""},
		{"a status of 0", "", &httplimit.StatusError{}, 400, blank, "", ""},
		{"a status that is no error", "", &httplimit.StatusError{Status: 200}, 500, blank, "", ""},
		{"a status without a text", "", &httplimit.StatusError{Status: 599}, 599, blank, "", ""},
		{"identity needs the store", "", &headgate.StoreError{Op: "take", Err: errors.New("secret")}, 503, reducedCapacity, "", ""},
		{"invalid limit", "", headgate.ErrInvalidLimit, 500, blank, "", ""},
		{"canceled, but not the caller", "", context.Canceled, 400, blank, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := states(headgate.State{Limit: daily, Allowed: true})
			w := serve(newMiddleware(t, newLimiter(t, store, headgate.Config{}, daily), httplimit.Config{
				Key: func(*http.Request) (string, error) { return test.key, test.err },
			})(ok), get())
			p := wantProblem(t, w, test.status, test.kind)
			if test.detail != "" && p.Detail != test.detail {
				t.Errorf("detail %q", p.Detail)
			}
			if strings.Contains(w.Body.String(), "secret") {
				t.Errorf("the cause is told: %s", w.Body)
			}
			wantFields(t, w.Header(), map[string]string{"WWW-Authenticate": test.auth, "RateLimit": ""})
			if len(store.taken) != 0 {
				t.Error("charged")
			}
		})
	}
}

func TestCallerWentAway(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	gone := get().WithContext(ctx)
	t.Run("before", func(t *testing.T) {
		store := states(headgate.State{Limit: daily, RetryAfter: time.Minute})
		wantGone(t, serve(newMiddleware(t, newLimiter(t, store, headgate.Config{}, daily), httplimit.Config{})(ok), gone))
		if len(store.taken) != 0 {
			t.Error("charged")
		}
	})
	t.Run("while the store was asked", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		limiter := newLimiter(t, &script{err: context.Canceled}, headgate.Config{}, daily)
		h := newMiddleware(t, limiter, httplimit.Config{Key: func(*http.Request) (string, error) { cancel(); return "k", nil }})(ok)
		wantGone(t, serve(h, get().WithContext(ctx)))
	})
	t.Run("deadline of the request", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		h := newMiddleware(t, newLimiter(t, nil, headgate.Config{}, daily), httplimit.Config{})(ok)
		wantProblem(t, serve(h, get().WithContext(ctx)), http.StatusServiceUnavailable, reducedCapacity)
	})
}

func wantGone(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	if w.Code != httplimit.StatusClientClosedRequest || w.Body.Len() != 0 {
		t.Errorf("%d %q, want 499 and no body", w.Code, w.Body)
	}
	wantFields(t, w.Header(), map[string]string{"Retry-After": "", "RateLimit": ""})
}

func TestHEADHasNoBody(t *testing.T) {
	for name, store := range map[string]*script{
		"denied": states(headgate.State{Limit: daily, RetryAfter: time.Minute}),
		"error":  {err: errors.New("away")},
	} {
		w := serve(newMiddleware(t, newLimiter(t, store, headgate.Config{}, daily), httplimit.Config{})(ok), httptest.NewRequest(http.MethodHead, "/", nil))
		if w.Code < 400 || w.Body.Len() != 0 || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: %d, body %q, %v", name, w.Code, w.Body, w.Header())
		}
	}
}

func TestHandlersOfOnesOwn(t *testing.T) {
	inner := headgate.State{Limit: daily, RetryAfter: 5 * time.Second}
	t.Run("denied", func(t *testing.T) {
		h := newMiddleware(t, newLimiter(t, states(inner), headgate.Config{}, daily), httplimit.Config{
			OnDenied: func(w http.ResponseWriter, r *http.Request, d headgate.Decision) {
				if seen, found := httplimit.FromContext(r.Context()); !found || seen.Limit != d.Limit || d.RetryAfter != 5*time.Second {
					t.Errorf("%+v, context %+v", d, seen)
				}
				http.Error(w, "slow down", http.StatusTooManyRequests)
			},
		})(ok)
		w := serve(h, get())
		if w.Code != 429 || w.Body.String() != "slow down\n" {
			t.Errorf("%d %q", w.Code, w.Body)
		}
		wantFields(t, w.Header(), map[string]string{"Retry-After": "5", "RateLimit": `"daily";r=0;t=5`})
	})
	t.Run("denied, ending with the default", func(t *testing.T) {
		h := newMiddleware(t, newLimiter(t, states(inner), headgate.Config{}, daily), httplimit.Config{OnDenied: httplimit.WriteDenied})(ok)
		if p := wantProblem(t, serve(h, get()), 429, quotaExceeded); len(p.Violated) != 1 || p.Violated[0] != "daily" {
			t.Errorf("%+v", p)
		}
	})
	t.Run("error", func(t *testing.T) {
		away := errors.New("away")
		h := newMiddleware(t, newLimiter(t, &script{err: away}, headgate.Config{}, daily), httplimit.Config{
			OnDenied: func(http.ResponseWriter, *http.Request, headgate.Decision) { t.Error("an outage reported as a denial") },
			OnError: func(w http.ResponseWriter, _ *http.Request, err error) {
				if !errors.Is(err, headgate.ErrStore) || !errors.Is(err, away) {
					t.Errorf("error %v", err)
				}
				w.WriteHeader(http.StatusBadGateway)
			},
		})(ok)
		if w := serve(h, get()); w.Code != http.StatusBadGateway || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%d %v", w.Code, w.Header())
		}
	})
	t.Run("WriteDenied alone", func(t *testing.T) {
		w := httptest.NewRecorder()
		w.Header().Set("Cache-Control", "no-store")
		httplimit.WriteDenied(w, get(), states(inner, inner).decision)
		if p := wantProblem(t, w, 429, quotaExceeded); len(p.Violated) != 1 {
			t.Errorf("%+v", p)
		}
	})
}

func TestStatusErrorText(t *testing.T) {
	cause := errors.New("cause")
	for err, want := range map[*httplimit.StatusError]string{
		{Status: 401, Detail: "detail", Err: cause}: "httplimit: status 401: cause",
		{Status: 403, Detail: "detail"}:             "httplimit: status 403: detail",
		{}:                                          "httplimit: status 400",
	} {
		if err.Error() != want || err.Err != nil && !errors.Is(err, cause) {
			t.Errorf("%q, want %q", err, want)
		}
	}
}
