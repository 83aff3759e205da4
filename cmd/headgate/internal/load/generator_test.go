package load_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/load"
)

// allow answers after a millisecond.
func allow(context.Context, int) load.Outcome {
	time.Sleep(time.Millisecond)
	return load.Outcome{}
}

// hang answers when nobody waits any more.
func hang(ctx context.Context, _ int) load.Outcome {
	<-ctx.Done()
	return load.Outcome{Verdict: load.Failed, Kind: "timeout", Err: ctx.Err()}
}

// between says whether d is about want, which a histogram knows to a thousandth.
func between(d load.Millis, low, high time.Duration) bool {
	return time.Duration(d) >= low && time.Duration(d) <= high
}

// A server that stands still for one second of ten is seen to do so by the requests of that second: a tenth of all. A caller that waits for
// one answer before it asks again would have met one slow answer in nine hundred.
func TestStalledServerShows(t *testing.T) {
	r := inBubble(t, func() load.Config {
		start := time.Now()
		return constant(100, 10*time.Second, func(ctx context.Context, key int) load.Outcome {
			if now := time.Since(start); now >= 4*time.Second && now < 5*time.Second {
				time.Sleep(5*time.Second - now)
			}
			return allow(ctx, key)
		})
	})
	all := r.Latency.All
	if r.Sent != 1000 || all.Count != 1000 || !between(all.P50, time.Millisecond, 2*time.Millisecond) ||
		!between(all.P99, 880*time.Millisecond, 920*time.Millisecond) || !between(all.Max, 1000*time.Millisecond, 1003*time.Millisecond) {
		t.Errorf("%+v, want a p99 of 900ms of 1000 requests", all)
	}
	if r.Late.Max != 0 {
		t.Errorf("late %+v, want none", r.Late)
	}
}

// What the generator itself is late by is part of the latency, and shown.
func TestLateStartsCount(t *testing.T) {
	r := inBubble(t, func() load.Config {
		cfg := constant(100, 10*time.Second, allow)
		arrivals, n := cfg.Arrivals, 0
		cfg.Arrivals = func() time.Duration {
			if n++; n == 401 {
				time.Sleep(time.Second) // this machine stands still
			}
			return arrivals()
		}
		return cfg
	})
	for name, p := range map[string]load.Percentiles{"all": r.Latency.All, "allowed": r.Latency.Allowed, "late": r.Late} {
		if p.Count != 1000 || !between(p.P99, 880*time.Millisecond, 920*time.Millisecond) {
			t.Errorf("%s: %+v, want a p99 of 900ms", name, p)
		}
	}
	if r.Latency.All.P50 == 0 || r.Late.P50 != 0 {
		t.Errorf("p50 of all %v and of late %v, want 1ms and 0", r.Latency.All.P50, r.Late.P50)
	}
}

// With all places taken, what is due is dropped, and the pace stays.
func TestDropped(t *testing.T) {
	r := inBubble(t, func() load.Config {
		cfg := constant(100, 2*time.Second, func(context.Context, int) load.Outcome {
			time.Sleep(995 * time.Millisecond)
			return load.Outcome{}
		})
		cfg.MaxInFlight = 10
		return cfg
	})
	if r.Sent != 20 || r.Dropped != 180 || r.Completed != 20 || r.Rates.Due != 100 || r.Rates.Sent != 10 {
		t.Errorf("%+v %+v, want 20 sent and 180 dropped at 100/s", r.Counts, r.Rates)
	}
}

func TestRates(t *testing.T) {
	r := inBubble(t, func() load.Config {
		return constant(100, 2*time.Second, func(context.Context, int) load.Outcome {
			time.Sleep(2010 * time.Millisecond)
			return load.Outcome{Verdict: load.Denied}
		})
	})
	if r.Rates != (load.Rates{Due: 100, Sent: 100, Completed: 50}) || r.Denied != 200 || r.Latency.Denied.Count != 200 || r.Latency.Allowed.Count != 0 {
		t.Errorf("%+v %+v, want all 200 denied, at 100/s, within four seconds", r.Rates, r.Counts)
	}
}

// What happens in the warm-up is not counted.
func TestWarmup(t *testing.T) {
	r := inBubble(t, func() load.Config {
		start := time.Now()
		cfg := constant(100, 2*time.Second, func(context.Context, int) load.Outcome {
			if time.Since(start) < time.Second {
				time.Sleep(5 * time.Second)
				return load.Outcome{Verdict: load.Failed, Kind: "cold"}
			}
			return load.Outcome{}
		})
		cfg.Warmup = time.Second
		return cfg
	})
	if r.Sent != 200 || r.Allowed != 200 || r.Failed != 0 || r.Latency.All.Max != 0 || r.Rates.Sent != 100 || r.Elapsed != load.Millis(2*time.Second) {
		t.Errorf("%+v %+v, want the 200 of the two seconds after", r.Counts, r.Rates)
	}
}

func TestTimeout(t *testing.T) {
	r := inBubble(t, func() load.Config {
		cfg := constant(10, time.Second, hang)
		cfg.Timeout = 300 * time.Millisecond
		return cfg
	})
	if r.Failed != 10 || len(r.Failures) != 1 || r.Failures[0].Kind != "timeout" || r.Failures[0].Count != 10 ||
		!between(r.Latency.All.Max, 300*time.Millisecond, 301*time.Millisecond) || r.Result() != load.Failing || r.Good() {
		t.Errorf("%+v %+v %v, want 10 time-outs", r.Counts, r.Failures, r.Result())
	}
}

// An interrupted run reports what it measured. Requests that do not end by themselves are ended after a second.
func TestInterrupted(t *testing.T) {
	for _, tt := range []struct {
		name                       string
		target                     targetFunc
		sent, completed, unfinshed int64
		took                       time.Duration
	}{
		{"answering", allow, 101, 101, 0, 1006 * time.Millisecond},
		{"hanging", hang, 101, 0, 101, 2005 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 1005*time.Millisecond)
			defer cancel()
			start := time.Now()
			cfg := constant(100, time.Hour, tt.target)
			r, err := load.Run(ctx, cfg)
			if err != nil {
				t.Fatal(err)
			}
			if !r.Interrupted || r.Sent != tt.sent || r.Completed != tt.completed || r.Unfinished != tt.unfinshed || r.Elapsed != load.Millis(1005*time.Millisecond) {
				t.Errorf("%s: %+v of %v, want %+v", tt.name, r.Counts, r.Elapsed, tt)
			}
			if took := time.Since(start); took > tt.took {
				t.Errorf("%s: took %v, want %v", tt.name, took, tt.took)
			}
		})
	}
}

// A run that was interrupted before it measured anything says so.
func TestNothingMeasured(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := load.Run(ctx, constant(100, time.Hour, allow))
	if err != nil {
		t.Fatal(err)
	}
	if r.Sent != 0 || r.Result() != load.Nothing || r.Good() {
		t.Errorf("%+v %v, want nothing", r.Counts, r.Result())
	}
}

// Progress comes once a second, and tells of each request once.
func TestProgress(t *testing.T) {
	var seen []load.Progress
	r := inBubble(t, func() load.Config {
		cfg := constant(100, 3500*time.Millisecond, func(context.Context, int) load.Outcome {
			time.Sleep(5 * time.Millisecond)
			return load.Outcome{}
		})
		cfg.Warmup = time.Second
		cfg.Progress = func(p load.Progress) { seen = append(seen, p) }
		return cfg
	})
	if len(seen) != 4 || r.Sent != 350 {
		t.Fatalf("%d progresses and %d sent, want 4 and 350", len(seen), r.Sent)
	}
	total := int64(0)
	for i, p := range seen {
		total += p.Sent
		if p.Elapsed != time.Duration(i+1)*time.Second || p.Sent < 99 || p.Sent > 101 || p.Total.Sent != total || !p.Warm || p.Latency.Count != p.Completed {
			t.Errorf("%d: %+v", i, p)
		}
	}
	if !between(seen[1].Latency.P99, 5*time.Millisecond, 6*time.Millisecond) {
		t.Errorf("p99 %v, want 5ms", seen[1].Latency.P99)
	}
}

func TestWrongConfig(t *testing.T) {
	good := constant(1, time.Second, allow)
	for name, spoil := range map[string]func(*load.Config){
		"target":    func(c *load.Config) { c.Target = nil },
		"arrivals":  func(c *load.Config) { c.Arrivals = nil },
		"keys":      func(c *load.Config) { c.KeyCount = load.MaxKeys + 1 },
		"duration":  func(c *load.Config) { c.Duration = 0 },
		"warmup":    func(c *load.Config) { c.Warmup = -1 },
		"in flight": func(c *load.Config) { c.MaxInFlight = 0 },
		"timeout":   func(c *load.Config) { c.Timeout = load.MaxTimeout + 1 },
	} {
		cfg := good
		spoil(&cfg)
		if r, err := load.Run(t.Context(), cfg); err == nil || r != nil || errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v %v, want an error", name, r, err)
		}
	}
}
