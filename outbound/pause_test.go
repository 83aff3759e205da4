package outbound_test

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/outbound"
)

// paused checks how long the partner's pause still is.
func paused(t testing.TB, tr *outbound.Transport, want time.Duration) {
	t.Helper()
	if got, err := tr.Paused(context.Background(), "partner"); err != nil || got != want {
		t.Errorf("paused for %v (%v), want %v", got, err, want)
	}
}

// One of two processes is told to come again in 2 s: both are silent for that long, and then wake in order, spread over the time of Jitter.
func TestTheWholeFleetPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each = 20
		store, up := inMemory(t), newUpstream(once(429, "Retry-After", "2"))
		fleet := [2]*outbound.Transport{}
		for i := range fleet {
			fleet[i] = transport(t, up, limiterOn(t, store, headgate.Config{}, "1000/s"), outbound.Config{MaxWait: time.Minute})
		}
		mustStatus(t, fleet[0], 429)
		c := newCrowd(t)
		for i := range each {
			for p, tr := range fleet {
				c.start(t.Context(), tr, "/"+strconv.Itoa(p)+strconv.Itoa(100+i))
			}
		}
		if errs := c.wait(); len(errs) > 0 {
			t.Error(errs)
		}
		first, last := up.at[1], up.at[len(up.at)-1]
		if len(up.at) != 1+2*each || first < 2*time.Second || last > 2*time.Second+outbound.DefaultJitter {
			t.Errorf("%d were sent, from %v to %v", len(up.at), first, last)
		}
		distinct := slices.Compact(slices.Clone(up.at[1:]))
		if len(distinct) < each || last-first < outbound.DefaultJitter/4 { // 40 points at random: that they all fall into a quarter is out of the question
			t.Errorf("woke at %v, want them spread", up.at[1:])
		}
		for p := range fleet {
			var order []string
			for _, path := range up.paths {
				if strings.HasPrefix(path, "/"+strconv.Itoa(p)) {
					order = append(order, path)
				}
			}
			if len(order) != each || !slices.IsSorted(order) {
				t.Errorf("process %d sent %v, want the order of arrival", p, order)
			}
		}
		if sent := fleet[0].Counts().Sent + fleet[1].Counts().Sent; sent != int64(len(up.at)) {
			t.Errorf("%d sent and %d arrived", sent, len(up.at))
		}
		if got := fleet[0].Counts(); got.Refused != 1 || got.Paused != 1 {
			t.Errorf("counts %+v", got)
		}
	})
}

// A step of a story: at this time a pause is asked for at one of two processes, and then this much of it is left for both.
type step struct {
	at, ask, left time.Duration
}

func TestTheLongestPauseWins(t *testing.T) {
	const s = time.Second
	stories := map[string][]step{
		"a longer one extends":            {{0, 2 * s, 2 * s}, {1 * s, 60 * s, 60 * s}, {31 * s, 0, 30 * s}, {61 * s, 0, 0}},
		"a shorter one changes nothing":   {{0, 60 * s, 60 * s}, {1 * s, 2 * s, 59 * s}, {58 * s, 1 * s, 2 * s}, {60 * s, 0, 0}},
		"one that ends at the same time":  {{0, 60 * s, 60 * s}, {50 * s, 10 * s, 10 * s}, {60 * s, 0, 0}},
		"a shorter one that ends later":   {{0, 60 * s, 60 * s}, {59 * s, 2 * s, 2 * s}, {61 * s, 0, 0}},
		"one after another":               {{0, 2 * s, 2 * s}, {2 * s, 2 * s, 2 * s}, {3 * s, 0, s}, {10 * s, time.Microsecond, time.Microsecond}, {11 * s, 0, 0}},
		"again and again":                 {{0, 2 * s, 2 * s}, {1 * s, 2 * s, 2 * s}, {2 * s, 2 * s, 2 * s}, {3 * s, 2 * s, 2 * s}, {5 * s, 0, 0}},
		"more than MaxPause":              {{0, 1000 * time.Hour, outbound.DefaultMaxPause}, {outbound.DefaultMaxPause, 0, 0}},
		"for longer than the guard lives": {{0, 2 * s, 2 * s}, {time.Hour - s, 2 * s, 2 * s}, {time.Hour, 3 * s, 3 * s}, {time.Hour + 3*s, 0, 0}},
	}
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, begin := inMemory(t), time.Now()
				one, two := transport(t, nil, limiterOn(t, store, headgate.Config{}), outbound.Config{}), transport(t, nil, limiterOn(t, store, headgate.Config{}), outbound.Config{})
				for i, st := range story {
					time.Sleep(st.at - time.Since(begin))
					if i%2 == 0 {
						one.Pause(t.Context(), "partner", st.ask)
					} else {
						two.Pause(t.Context(), "partner", st.ask)
					}
					paused(t, one, st.left)
					paused(t, two, st.left)
					paused(t, transport(t, nil, limiterOn(t, store, headgate.Config{}), outbound.Config{}), st.left) // a process that has just started
				}
			})
		})
	}
}

// Many processes ask for different pauses at once, on top of one another: the longest holds, exactly, again and again.
func TestPausesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := inMemory(t)
		fleet := make([]*outbound.Transport, 8)
		for i := range fleet {
			fleet[i] = transport(t, nil, limiterOn(t, store, headgate.Config{}), outbound.Config{})
		}
		longest := time.Duration(0)
		for round := range 50 {
			var wg sync.WaitGroup
			for i, tr := range fleet {
				for j := range 4 {
					d := time.Duration(1+(round*7+i*31+j*17)%40) * 100 * time.Millisecond
					longest = max(longest, d)
					wg.Go(func() { tr.Pause(t.Context(), "partner", d) })
				}
			}
			wg.Wait()
			for _, tr := range fleet {
				paused(t, tr, longest)
			}
			if round%3 == 0 {
				time.Sleep(longest)
				paused(t, fleet[0], 0)
				longest = 0
			}
		}
	})
}

// The same while the store takes its time: a pause never ends early, and is no longer than what asking for it took.
func TestPausesAtOnceOnASlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const took = 3 * time.Millisecond
		store := slow{inMemory(t), took}
		fleet := make([]*outbound.Transport, 5)
		for i := range fleet {
			fleet[i] = transport(t, nil, limiterOn(t, store, headgate.Config{}), outbound.Config{})
		}
		begin := time.Now()
		var wg sync.WaitGroup
		for i, tr := range fleet {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				tr.Pause(t.Context(), "partner", 2*time.Second)
			})
		}
		wg.Wait()
		end := begin.Add(2*time.Second + time.Duration(len(fleet)-1)*time.Millisecond) // of the last that asked
		got, err := fleet[0].Paused(t.Context(), "partner")
		now := time.Now()
		if over := now.Add(got).Sub(end); err != nil || over < 0 || over > took {
			t.Errorf("the pause ends %v late (%v), want 0 to %v", over, err, took)
		}
	})
}

// A pause spends nothing: neither of those who wait for its end, nor of those who fail.
func TestAPauseSpendsNothing(t *testing.T) {
	for _, limit := range []string{"10/hour", "10/hour fixed-window", "10/hour aligned-window", "10/hour sliding-window", "10/hour sliding-log"} {
		synctest.Test(t, func(t *testing.T) {
			store := inMemory(t)
			l := limiterOn(t, store, headgate.Config{}, limit)
			up := newUpstream(once(429, "Retry-After", "2"))
			told, not := transport(t, up, l, outbound.Config{}), transport(t, up, l, outbound.Config{})
			mustStatus(t, told, 429)
			for range 20 {
				mustLimit(t, told, 2*time.Second, true)
				mustLimit(t, not, 2*time.Second, true) // it finds out at its first request
			}
			left(t, l, 9)
			time.Sleep(2 * time.Second)
			mustStatus(t, told, 200)
			mustStatus(t, not, 200)
			left(t, l, 7)
			if got := not.Counts(); got.Limited != 20 || got.Allowed != 1 {
				t.Errorf("counts %+v", got)
			}
		})
	}
}

// What a response says is taken up, or not: the pause after it.
func TestWhatPauses(t *testing.T) {
	tests := []struct {
		status int
		fields []string
		want   time.Duration
	}{
		{503, nil, 0},
		{429, nil, 0},
		{429, []string{"Retry-After", "0"}, 0},
		{429, []string{"Retry-After", "Fri, 01 Jan 1999 00:00:00 GMT"}, 0},
		{429, []string{"Retry-After", "99999999999"}, outbound.DefaultMaxPause},
		{429, []string{"Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT"}, outbound.DefaultMaxPause},
		{503, []string{"Date", "Mon, 01 Jan 2024 00:00:00 GMT", "Retry-After", "Mon, 01 Jan 2024 00:00:05 GMT"}, 5 * time.Second},
		{200, []string{"RateLimit", `"daily";r=0;t=30`}, 30 * time.Second},
		{200, []string{"RateLimit", `"daily";r=1;t=30`}, 0},
		{429, []string{"Retry-After", "soon"}, 0},
		{429, []string{"Retry-After-Ms", "1500"}, 1500 * time.Millisecond},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			var events []outbound.Event
			tr := transport(t, newUpstream(once(tt.status, tt.fields...)), limiterOn(t, inMemory(t), headgate.Config{}), outbound.Config{
				Observer: outbound.ObserverFunc(func(_ context.Context, e outbound.Event) {
					if e.Kind == outbound.Paused {
						events = append(events, e)
					}
				}),
			})
			mustStatus(t, tr, tt.status)
			paused(t, tr, tt.want)
			if tt.want == 0 {
				mustStatus(t, tr, 200)
				if len(events) > 0 {
					t.Errorf("%d %q: %+v", tt.status, tt.fields, events)
				}
				return
			}
			mustLimit(t, tr, tt.want, true)
			if len(events) != 1 || events[0].Duration != tt.want || events[0].Status != tt.status || events[0].Field == "" {
				t.Errorf("%d %q: events %+v", tt.status, tt.fields, events)
			}
		})
	}
}

// The pause of one key does not stop another.
func TestKeysApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		byPath := func(req *http.Request) (string, error) { return req.URL.Path, nil }
		tr := transport(t, newUpstream(once(429, "Retry-After", "2")), limiterOn(t, inMemory(t), headgate.Config{}, "5/s"), outbound.Config{Key: byPath})
		for _, path := range []string{"/a", "/b"} {
			if _, err := status(t, tr, get(t, t.Context(), path)); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
		_, err := status(t, tr, get(t, t.Context(), "/a"))
		checkLimited(t, err, 2*time.Second, true)
	})
}

// Who may not wait until the pause is over fails at once; who may just so is sent just so, in spite of Jitter.
func TestMaxWaitAndPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiterOn(t, inMemory(t), headgate.Config{}, "5/s")
		up := newUpstream(nil)
		tr := transport(t, up, l, outbound.Config{MaxWait: 2 * time.Second, Jitter: time.Minute})
		tr.Pause(t.Context(), "partner", 2*time.Second+1)
		mustLimit(t, tr, 2*time.Second+time.Microsecond, true) // the store counts microseconds
		time.Sleep(2 * time.Microsecond)
		mustStatus(t, tr, 200)
		if got := time.Since(up.begin); got > 2*time.Second+2*time.Microsecond || got < 2*time.Second+time.Microsecond {
			t.Errorf("sent after %v", got)
		}
	})
}

// A pause that is made longer while requests wait for its end holds them, too.
func TestAPauseGrowsWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, up := inMemory(t), newUpstream(nil)
		tr := transport(t, up, limiterOn(t, store, headgate.Config{}, "5/s"), outbound.Config{MaxWait: time.Minute, Jitter: -1})
		other := transport(t, up, limiterOn(t, store, headgate.Config{}, "5/s"), outbound.Config{})
		tr.Pause(t.Context(), "partner", 2*time.Second)
		c := newCrowd(t)
		c.start(t.Context(), tr, "/a")
		c.start(t.Context(), tr, "/b")
		time.Sleep(time.Second)
		other.Pause(t.Context(), "partner", 5*time.Second)
		if errs := c.wait(); len(errs) > 0 {
			t.Error(errs)
		}
		if want := []time.Duration{6 * time.Second, 6 * time.Second}; !slices.Equal(up.at, want) {
			t.Errorf("sent at %v, want %v", up.at, want)
		}
	})
}
