package outbound_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/outbound"
)

// flaky is a store that can be away.
type flaky struct {
	headgate.Store
	away *atomic.Bool
}

var errAway = errors.New("away")

func (f flaky) Take(ctx context.Context, first headgate.Charge, more ...headgate.Charge) (headgate.Decision, error) {
	if f.away.Load() {
		return headgate.Decision{}, errAway
	}
	return f.Store.Take(ctx, first, more...)
}

// While the store is away, a pause holds where it was heard, and the store is told once it answers.
func TestAPauseWithoutTheStore(t *testing.T) {
	for _, mode := range []headgate.FailureMode{headgate.FailOpen, headgate.FailLocal, headgate.FailClosed} {
		synctest.Test(t, func(t *testing.T) {
			store := flaky{inMemory(t), new(atomic.Bool)}
			cfg := headgate.Config{OnStoreError: mode, Replicas: func() int { return 2 }, Breaker: headgate.BreakerConfig{Failures: -1}}
			limited := func() *headgate.Limiter { return limiterOn(t, store, cfg, "50/s") }
			up := newUpstream(func(n int, _ *http.Request) (*http.Response, error) {
				if n == 1 {
					store.away.Store(true) // between the request and its response
					return respond(429, "Retry-After", "5"), nil
				}
				return respond(200), nil
			})
			tr, other := transport(t, up, limited(), outbound.Config{}), transport(t, up, limited(), outbound.Config{})
			mustStatus(t, tr, 429)
			mustLimit(t, tr, 5*time.Second, true)
			if mode == headgate.FailClosed {
				if _, err := status(t, other, get(t, t.Context(), "/")); !errors.Is(err, headgate.ErrStore) {
					t.Errorf("closed: %v, want ErrStore", err)
				}
			} else {
				mustStatus(t, other, 200) // it cannot know
			}
			time.Sleep(time.Second)
			store.away.Store(false)
			mustLimit(t, tr, 4*time.Second, true)
			mustLimit(t, other, 4*time.Second, true)
			time.Sleep(4 * time.Second)
			mustStatus(t, tr, 200)
			mustStatus(t, other, 200)
		})
	}
}

// A pause that was lifted in the store is over for those who know of it.
func TestALiftedPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := inMemory(t)
		tr := transport(t, newUpstream(nil), limiterOn(t, store, headgate.Config{}), outbound.Config{})
		tr.Pause(t.Context(), "partner", time.Minute)
		mustLimit(t, tr, time.Minute, true)
		time.Sleep(time.Second)
		limit := headgate.Limit{Count: 1000, Period: time.Millisecond, Burst: outbound.LongestPause.Microseconds()}
		if err := store.Reset(t.Context(), headgate.Charge{Key: "partner", Limit: limit}); err != nil {
			t.Fatal(err)
		}
		mustStatus(t, tr, 200)
		paused(t, tr, 0)
	})
}
