package outbound_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/outbound"
)

func TestConfig(t *testing.T) {
	l := limiterOn(t, inMemory(t), headgate.Config{}, "5/s")
	charges := func(*http.Request) ([]headgate.Charge, error) { return nil, nil }
	cost := func(*http.Request) (int64, error) { return 1, nil }
	full := make([]string, headgate.MaxCharges)
	for i := range full {
		full[i] = strings.Repeat("9", i/9+1)[:i/9] + string(rune('1'+i%9)) + "/s"
	}
	tests := map[string]struct {
		limiter *headgate.Limiter
		cfg     outbound.Config
		ok      bool
	}{
		"no limiter":             {nil, outbound.Config{Key: partner}, false},
		"neither":                {l, outbound.Config{}, false},
		"both":                   {l, outbound.Config{Key: partner, Charges: charges}, false},
		"cost of charges":        {l, outbound.Config{Charges: charges, Cost: cost}, false},
		"negative MaxWait":       {l, outbound.Config{Key: partner, MaxWait: -1}, false},
		"negative MaxPause":      {l, outbound.Config{Key: partner, MaxPause: -1}, false},
		"MaxPause beyond a day":  {l, outbound.Config{Key: partner, MaxPause: outbound.LongestPause + 1}, false},
		"negative Retries":       {l, outbound.Config{Key: partner, Retries: -1, MaxWait: 1}, false},
		"Retries in no time":     {l, outbound.Config{Key: partner, Retries: 1}, false},
		"unknown fields":         {l, outbound.Config{Key: partner, Fields: 128}, false},
		"NoFields and some":      {l, outbound.Config{Key: partner, Fields: outbound.NoFields | outbound.RateLimit}, false},
		"a key":                  {l, outbound.Config{Key: partner, Cost: cost, MaxWait: 1, Retries: 1, MaxPause: outbound.LongestPause}, true},
		"charges":                {l, outbound.Config{Charges: charges, Fields: outbound.NoFields, Jitter: -1}, true},
		"a limiter of no limits": {limiterOn(t, inMemory(t), headgate.Config{}), outbound.Config{Key: partner}, true},
	}
	for name, tt := range tests {
		tr, err := outbound.NewTransport(nil, tt.limiter, tt.cfg)
		if tt.ok && (err != nil || tr == nil) || !tt.ok && !errors.Is(err, headgate.ErrInvalidConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Errors of the functions of a Config end the request, uncharged.
func TestFunctionsThatFail(t *testing.T) {
	bad := errors.New("bad")
	l := limiterOn(t, inMemory(t), headgate.Config{}, "5/hour fixed-window")
	for name, cfg := range map[string]outbound.Config{
		"key":     {Key: func(*http.Request) (string, error) { return "", bad }},
		"cost":    {Cost: func(*http.Request) (int64, error) { return 0, bad }},
		"charges": {Charges: func(*http.Request) ([]headgate.Charge, error) { return nil, bad }},
		"pause":   {PauseKey: func(*http.Request) (string, error) { return "", bad }},
	} {
		if _, err := status(t, transport(t, newUpstream(nil), l, cfg), get(t, t.Context(), "/")); err != bad {
			t.Errorf("%s: %v, want its error", name, err)
		}
	}
	for name, cfg := range map[string]outbound.Config{
		"no key":        {Key: func(*http.Request) (string, error) { return "", nil }},
		"a long key":    {Key: func(*http.Request) (string, error) { return strings.Repeat("secret", 1000), nil }},
		"negative cost": {Cost: func(*http.Request) (int64, error) { return -1, nil }},
	} {
		_, err := status(t, transport(t, newUpstream(nil), l, cfg), get(t, t.Context(), "/"))
		if !errors.Is(err, headgate.ErrInvalidCharge) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want ErrInvalidCharge without the key", name, err)
		}
	}
	left(t, l, 5)
}

// The Observer is told of everything that is counted, in its order.
func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kinds []string
		tr := transport(t, newUpstream(once(429, "Retry-After", "1")), limiterOn(t, inMemory(t), headgate.Config{}, "5/s"), outbound.Config{
			MaxWait: 3 * time.Second, Retries: 1, Jitter: -1,
			Observer: outbound.ObserverFunc(func(_ context.Context, e outbound.Event) {
				k := e.Kind.String()
				if e.Duration > 0 {
					k += " " + e.Duration.String()
				}
				kinds = append(kinds, k+e.Field)
			}),
		})
		mustStatus(t, tr, 200)
		tr.Pause(t.Context(), "partner", time.Minute)
		mustLimit(t, tr, time.Minute, true)
		want := "asked, allowed, sent, refused, paused 1sRetry-After, asked, waiting 1s, allowed 1s, resent, sent, asked, limited 1m0s"
		if got := strings.Join(kinds, ", "); got != want {
			t.Errorf("events %s\nwant   %s", got, want)
		}
	})
}

// What is remembered of keys is bounded, and what is forgotten is found again.
func TestManyPausedKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := func(req *http.Request) (string, error) { return req.URL.Path, nil }
		tr := transport(t, newUpstream(nil), limiterOn(t, inMemory(t), headgate.Config{}), outbound.Config{Key: key})
		paths := make([]string, 12_000)
		for i := range paths {
			paths[i] = "/" + time.Duration(i).String()
			tr.Pause(t.Context(), paths[i], time.Minute)
		}
		if n := tr.Known(); n > 10_000 {
			t.Errorf("%d keys are remembered", n)
		}
		for _, path := range paths[:100] {
			_, err := status(t, tr, get(t, t.Context(), path))
			checkLimited(t, err, time.Minute, true)
		}
		time.Sleep(2 * time.Minute)
		tr.Pause(t.Context(), "one more", time.Second)
		for _, path := range paths {
			if _, err := status(t, tr, get(t, t.Context(), path)); err != nil {
				t.Fatal(err)
			}
		}
		if n := tr.Known(); n != 1 {
			t.Errorf("%d keys are remembered, want 1", n)
		}
	})
}
