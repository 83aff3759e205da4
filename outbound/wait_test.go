package outbound_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/outbound"
)

const tenth = 100 * time.Millisecond

func TestInOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := newUpstream(nil)
		tr := transport(t, up, limiterOn(t, inMemory(t), headgate.Config{}, "10/s burst 1"), outbound.Config{MaxWait: time.Minute})
		c := newCrowd(t)
		for i := range 6 {
			c.start(t.Context(), tr, "/"+strconv.Itoa(i))
		}
		if n := tr.Counts().WaitingNow; n != 5 {
			t.Errorf("%d wait, want 5", n)
		}
		if errs := c.wait(); len(errs) > 0 {
			t.Error(errs)
		}
		if got := strings.Join(up.paths, ""); got != "/0/1/2/3/4/5" {
			t.Errorf("sent in the order %s", got)
		}
		if want := []time.Duration{0, tenth, 2 * tenth, 3 * tenth, 4 * tenth, 5 * tenth}; !slices.Equal(up.at, want) {
			t.Errorf("sent at %v, want %v", up.at, want)
		}
		want := outbound.Counts{Asked: 6, Allowed: 6, Sent: 6, Waited: 5}
		if got := tr.Counts(); got != want {
			t.Errorf("counts %+v, want %+v", got, want)
		}
	})
}

// A line is no longer than what the limits let through within MaxWait: who would stand behind that fails at once.
func TestLineIsBounded(t *testing.T) {
	for text, want := range map[string]int{"1/s": 10, "1/s burst 5": 14, "4/2s fixed-window": 20, "4/2s sliding-log": 20, "2/h": 2} {
		synctest.Test(t, func(t *testing.T) {
			up := newUpstream(nil)
			tr := transport(t, up, limiterOn(t, inMemory(t), headgate.Config{}, text), outbound.Config{MaxWait: 9500 * time.Millisecond})
			c := newCrowd(t)
			start := time.Now()
			for i := range 500 {
				c.start(t.Context(), tr, "/"+strconv.Itoa(i))
			}
			if n := tr.Counts().WaitingNow; n > int64(want)+4 { // a window may end at once, so one more window of them may hope
				t.Errorf("%s: %d wait for what lets %d through", text, n, want)
			}
			if time.Since(start) != 0 {
				t.Fatal("time went on")
			}
			errs := c.wait()
			for _, err := range errs {
				var limited *outbound.LimitedError
				if !errors.As(err, &limited) || limited.RetryAfter <= 0 {
					t.Fatalf("%s: %v, want a LimitedError", text, err)
				}
			}
			if len(up.paths) != want || len(errs) != 500-want {
				t.Errorf("%s: %d sent and %d refused of 500, want %d sent", text, len(up.paths), len(errs), want)
			}
		})
	}
}

// Without MaxWait, a request that would have to wait fails at once, with the decision.
func TestFailsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := newUpstream(nil)
		l := limiterOn(t, inMemory(t), headgate.Config{}, "1/s", "100/day fixed-window")
		tr := transport(t, up, l, outbound.Config{})
		mustStatus(t, tr, 200)
		time.Sleep(tenth)
		_, err := status(t, tr, get(t, t.Context(), "/"))
		checkLimited(t, err, 9*tenth, false)
		var limited *outbound.LimitedError
		if errors.As(err, &limited) {
			d := limited.Decision
			if d.Allowed || d.Limit.String() != "1/s" || d.RetryAfter != 9*tenth || len(d.States) != 2 || d.Source != headgate.FromStore {
				t.Errorf("decision %+v", d)
			}
		}
		if time.Since(up.begin) != tenth || len(up.at) != 1 {
			t.Errorf("it took %v, and %d were sent", time.Since(up.begin), len(up.at))
		}
		if got := tr.Counts(); got.Asked != 2 || got.Limited != 1 || got.Sent != 1 || got.Waited != 0 {
			t.Errorf("counts %+v", got)
		}
	})
}

func TestMaxWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := transport(t, newUpstream(nil), limiterOn(t, inMemory(t), headgate.Config{}, "1/s"), outbound.Config{MaxWait: 2 * time.Second})
		c, begin := newCrowd(t), time.Now()
		for i := range 4 { // sent at 0, 1 s, 2 s; the last one's time is over when it would be its turn
			c.start(t.Context(), tr, "/"+strconv.Itoa(i))
		}
		errs := c.wait()
		if took := time.Since(begin); len(errs) != 1 || took != 2*time.Second {
			t.Errorf("after %v: %v, want one error", took, errs)
		}
		if !errors.Is(errs["/3"], outbound.ErrLimited) {
			t.Errorf("error %v", errs["/3"])
		}

		time.Sleep(time.Minute)
		l := limiterOn(t, inMemory(t), headgate.Config{}, "1/m")
		tr, begin = transport(t, newUpstream(nil), l, outbound.Config{MaxWait: 2 * time.Second}), time.Now()
		mustStatus(t, tr, 200)
		mustLimit(t, tr, time.Minute, false) // it is known from the first that it will not do
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		tr = transport(t, newUpstream(nil), l, outbound.Config{MaxWait: time.Hour})
		_, err := status(t, tr, get(t, ctx, "/")) // as it is by the deadline of the context
		checkLimited(t, err, time.Minute, false)
		if took := time.Since(begin); took != 0 {
			t.Errorf("it took %v to say so", took)
		}
	})
}

// Who stands behind one that must wait longer than it may itself, fails at once.
func TestBehindOneThatWaitsTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := transport(t, newUpstream(nil), limiterOn(t, inMemory(t), headgate.Config{}, "1/m"), outbound.Config{MaxWait: time.Hour})
		mustStatus(t, tr, 200)
		c := newCrowd(t)
		c.start(t.Context(), tr, "/a")
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := status(t, tr, get(t, ctx, "/b"))
		checkLimited(t, err, time.Minute, false)
		if took := time.Since(begin); took != 0 {
			t.Errorf("it took %v to say so", took)
		}
		if errs := c.wait(); len(errs) > 0 {
			t.Error(errs)
		}
	})
}

func TestMoreThanTheCapacity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiterOn(t, inMemory(t), headgate.Config{}, "5/s")
		cost := func(*http.Request) (int64, error) { return 6, nil }
		for _, wait := range []time.Duration{0, time.Hour} {
			_, err := status(t, transport(t, newUpstream(nil), l, outbound.Config{Cost: cost, MaxWait: wait}), get(t, t.Context(), "/"))
			checkLimited(t, err, headgate.Never, false)
			if !errors.Is(err, headgate.ErrExceedsCapacity) {
				t.Errorf("error %v, want ErrExceedsCapacity", err)
			}
		}
		left(t, l, 5)
	})
}

// A request whose context ends takes nothing along, wherever it stands.
func TestCancelled(t *testing.T) {
	for name, cancelled := range map[string]int{"the head": 0, "in the middle": 1, "the last": 3} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				up := newUpstream(nil)
				l := limiterOn(t, inMemory(t), headgate.Config{}, "10/s burst 1")
				tr := transport(t, up, l, outbound.Config{MaxWait: time.Minute})
				mustStatus(t, tr, 200)
				c := newCrowd(t)
				ctx, cancel := context.WithCancel(t.Context())
				for i := range 4 {
					of := t.Context()
					if i == cancelled {
						of = ctx
					}
					c.start(of, tr, "/"+strconv.Itoa(i))
				}
				time.Sleep(tenth / 2)
				cancel()
				if errs := c.wait(); len(errs) != 1 || errs["/"+strconv.Itoa(cancelled)] != context.Canceled {
					t.Errorf("errors %v", errs)
				}
				if want := []time.Duration{0, tenth, 2 * tenth, 3 * tenth}; !slices.Equal(up.at, want) {
					t.Errorf("sent at %v, want %v", up.at, want)
				}
				if got := tr.Counts(); got.Asked != 5 || got.Allowed != 4 || got.Sent != 4 || got.WaitingNow != 0 {
					t.Errorf("counts %+v", got)
				}
			})
		})
	}
}

// slow is a store that decides after a while.
type slow struct {
	headgate.Store
	after time.Duration
}

func (s slow) Take(ctx context.Context, first headgate.Charge, more ...headgate.Charge) (headgate.Decision, error) {
	time.Sleep(s.after)
	return s.Store.Take(ctx, first, more...)
}

// What is granted as the context ends is given back, to the last token.
func TestCancelledWhileTaking(t *testing.T) {
	for _, wait := range []time.Duration{0, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			l := limiterOn(t, slow{inMemory(t), 10 * time.Millisecond}, headgate.Config{}, "5/hour fixed-window")
			tr := transport(t, newUpstream(nil), l, outbound.Config{MaxWait: wait})
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Millisecond)
			defer cancel()
			for range 2 { // the first is sent, the second given back
				if _, err := status(t, tr, get(t, ctx, "/")); err != nil && err != context.DeadlineExceeded {
					t.Error(err)
				}
			}
			left(t, l, 4)
			if got := tr.Counts(); got.Sent != 1 {
				t.Errorf("counts %+v", got)
			}
		})
	}
}

// Charges of several keys are decided together; the first key is that of the line and the pause, or the one PauseKey says.
func TestCharges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiterOn(t, inMemory(t), headgate.Config{})
		org := headgate.Limit{Name: "org", Algorithm: headgate.FixedWindow, Count: 10, Period: time.Hour}
		user := headgate.Limit{Name: "user", Algorithm: headgate.FixedWindow, Count: 2, Period: time.Minute}
		cfg := outbound.Config{MaxWait: time.Hour, Jitter: -1, Charges: func(req *http.Request) ([]headgate.Charge, error) {
			if req.URL.Path == "/free" {
				return nil, nil
			}
			return []headgate.Charge{{Key: "acme", Cost: 1, Limit: org}, {Key: "acme/ann", Cost: 1, Limit: user}}, nil
		}}
		up := newUpstream(nil)
		tr := transport(t, up, l, cfg)
		for range 3 {
			mustStatus(t, tr, 200)
		}
		if want := []time.Duration{0, 0, time.Minute}; !slices.Equal(up.at, want) {
			t.Errorf("sent at %v, want %v", up.at, want)
		}
		if _, err := status(t, tr, get(t, t.Context(), "/free")); !errors.Is(err, headgate.ErrInvalidCharge) {
			t.Errorf("no charge and no PauseKey: %v, want ErrInvalidCharge", err)
		}
		tr.Pause(t.Context(), "acme", time.Second)
		tr.Pause(t.Context(), "mine", 3*time.Second)
		mustStatus(t, tr, 200)
		cfg.PauseKey = func(*http.Request) (string, error) { return "mine", nil }
		tr = transport(t, up, l, cfg)
		if _, err := status(t, tr, get(t, t.Context(), "/free")); err != nil {
			t.Error(err)
		}
		if want := []time.Duration{0, 0, time.Minute, time.Minute + time.Second, time.Minute + 3*time.Second}; !slices.Equal(up.at, want) {
			t.Errorf("sent at %v, want %v", up.at, want)
		}
	})
}
