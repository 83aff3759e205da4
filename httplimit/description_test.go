package httplimit_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

// manyLists are more lists of limits than are kept, many of them alike but for one thing, and of which some hold a limit twice.
func manyLists(random *rand.Rand) [][]headgate.State {
	var limits []headgate.Limit
	for i := range int64(6) {
		limits = append(limits, headgate.PerSecond(10+i), headgate.Limit{Name: fmt.Sprintf("a%da", i), Count: 10, Period: time.Second},
			headgate.Limit{Name: "named", Count: 10 + i, Period: time.Minute}, headgate.Limit{Count: 10, Period: time.Second, Burst: 10 + i})
	}
	lists := make([][]headgate.State, 300)
	for i := range lists {
		for range 1 + random.IntN(3) {
			allowed := random.IntN(4) > 0
			lists[i] = append(lists[i], headgate.State{Limit: limits[random.IntN(len(limits))], Allowed: allowed, Remaining: random.Int64N(9), ResetAfter: time.Second})
		}
	}
	return lists
}

// A response says the same whatever limits the middleware has described before.
func TestDescriptionsAreTheDecisions(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	lists := manyLists(random)
	store := new(script)
	limiter := newLimiter(t, store, headgate.Config{}, headgate.PerSecond(1))
	worn := newMiddleware(t, limiter, httplimit.Config{})(ok)
	for range 3000 {
		store.decision = headgate.Decide(instant, lists[random.IntN(len(lists))])
		got, want := serve(worn, get()), serve(newMiddleware(t, limiter, httplimit.Config{})(ok), get())
		if got.Code != want.Code || got.Body.String() != want.Body.String() {
			t.Fatalf("%v: %d %s, want %d %s", store.decision, got.Code, got.Body, want.Code, want.Body)
		}
		wantFields(t, got.Header(), map[string]string{
			"RateLimit": want.Header().Get("RateLimit"), "RateLimit-Policy": want.Header().Get("RateLimit-Policy"),
		})
		if t.Failed() {
			t.Fatalf("%+v", store.decision)
		}
	}
}

// What a request allocates: what the handler gets, its request, and the value of RateLimit, whose number is another each time.
func TestMiddlewareAllocates(t *testing.T) {
	limit := headgate.Limit{Name: "pass", Count: 1e12, Period: time.Second}
	lists := [2][]headgate.Charge{{{Key: "one", Cost: 1, Limit: limit}}, {{Key: "one", Cost: 1, Limit: headgate.PerDay(1e12)}}}
	turn := 0
	inTurn := func(*http.Request) ([]headgate.Charge, error) { turn++; return lists[turn%2], nil }
	for _, tt := range []struct {
		name   string
		limits []headgate.Limit
		cfg    httplimit.Config
		want   float64
	}{
		{"key", []headgate.Limit{limit}, httplimit.Config{}, 3},
		{"key, no fields", []headgate.Limit{limit}, httplimit.Config{Fields: httplimit.NoFields}, 2},
		{"charges under one limit or another", nil, httplimit.Config{Charges: inTurn}, 3},
	} {
		h := newMiddleware(t, newLimiter(t, nil, headgate.Config{}, tt.limits...), tt.cfg)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		w, r := &discard{header: http.Header{}}, get()
		for range 2 { // each list is described once
			h.ServeHTTP(w, r)
		}
		if got := testing.AllocsPerRun(100, func() { h.ServeHTTP(w, r) }); got != tt.want {
			t.Errorf("%s: %v allocations, want %v", tt.name, got, tt.want)
		}
	}
}
