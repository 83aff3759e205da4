package headgate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
)

var errBroken = errors.New("connection refused")

// failing is a store that never answers.
type failing struct{ err error }

func (f failing) Take(context.Context, headgate.Charge, ...headgate.Charge) (headgate.Decision, error) {
	return headgate.Decision{}, f.err
}
func (f failing) Refund(context.Context, headgate.Charge, ...headgate.Charge) error { return f.err }
func (f failing) Reset(context.Context, headgate.Charge, ...headgate.Charge) error  { return f.err }

// forwarding is a store behind a store, which a Limiter does not know to be a Memory.
type forwarding struct{ headgate.Store }

// hanging is a store that blocks until the context ends.
type hanging struct{}

func (hanging) Take(ctx context.Context, _ headgate.Charge, _ ...headgate.Charge) (headgate.Decision, error) {
	<-ctx.Done()
	return headgate.Decision{}, ctx.Err()
}
func (hanging) Refund(ctx context.Context, _ headgate.Charge, _ ...headgate.Charge) error {
	<-ctx.Done()
	return ctx.Err()
}
func (h hanging) Reset(ctx context.Context, c headgate.Charge, _ ...headgate.Charge) error {
	return h.Refund(ctx, c)
}

// slow is a store that decides after a while, whatever the context.
type slow struct {
	headgate.Store
	delay time.Duration
}

func (s slow) Take(ctx context.Context, c headgate.Charge, more ...headgate.Charge) (headgate.Decision, error) {
	time.Sleep(s.delay)
	return s.Store.Take(ctx, c, more...)
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestFailClosed(t *testing.T) {
	l := limiterOn(t, failing{errBroken}, headgate.Config{Logger: quiet()}, "5/s", "9/s")
	d, err := l.Allow(t.Context(), "k")
	want := headgate.Decision{Limit: headgate.PerSecond(5), RetryAfter: time.Second, Source: headgate.FromClosed}
	if !same(d, want) || !errors.Is(err, headgate.ErrStore) || !errors.Is(err, errBroken) {
		t.Errorf("got %+v, %v, want %+v and the cause", d, err, want)
	}
}

func TestFailOpen(t *testing.T) {
	l := limiterOn(t, failing{errBroken}, headgate.Config{OnStoreError: headgate.FailOpen, Logger: quiet()}, "5/s")
	for range 20 {
		d, err := l.Allow(t.Context(), "k")
		if want := (headgate.Decision{Allowed: true, Limit: headgate.PerSecond(5), Source: headgate.FromOpen}); !same(d, want) || err != nil {
			t.Fatalf("got %+v, %v, want %+v", d, err, want)
		}
	}
	if err := l.Wait(t.Context(), "k", 1); err != nil {
		t.Errorf("Wait: %v", err)
	}
}

func TestFailLocalDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiterOn(t, failing{errBroken}, headgate.Config{OnStoreError: headgate.FailLocal, Logger: quiet()}, "2/s")
		d := mustAllow(t, l, "k", 2)
		if want := (headgate.Decision{Allowed: true, Limit: headgate.PerSecond(2), ResetAfter: time.Second, Source: headgate.FromLocal}); !same(d, want) {
			t.Errorf("got %+v, want %+v", d, want)
		}
		if d = mustDeny(t, l, "k", 1); d.RetryAfter != 500*time.Millisecond || d.Source != headgate.FromLocal {
			t.Errorf("denied: %+v", d)
		}
		mustAllow(t, l, "another", 2)
		start := time.Now()
		if err := l.Wait(t.Context(), "k", 1); err != nil || time.Since(start) != 500*time.Millisecond {
			t.Errorf("Wait: %v after %v", err, time.Since(start))
		}
	})
}

// What n replicas pass together in one burst: at most the limit, or n where the limit is below n.
func TestFailLocalSharesTheLimit(t *testing.T) {
	for _, algorithm := range []string{"", " fixed-window", " aligned-window", " sliding-window", " sliding-log"} {
		for _, tt := range []struct{ count, replicas, want int }{
			{100, 1, 100}, {100, 3, 99}, {100, 4, 100}, {3, 3, 3}, {3, 4, 4}, {1, 10, 10}, {0, 3, 0}, {10, 0, 10}, {10, -5, 10},
		} {
			passed := 0
			for range max(1, tt.replicas) {
				l := limiterOn(t, failing{errBroken}, headgate.Config{OnStoreError: headgate.FailLocal, Logger: quiet(),
					Replicas: func() int { return tt.replicas }}, fmt.Sprintf("%d/day%s", tt.count, algorithm))
				for range tt.count + 1 {
					if d, err := l.Allow(t.Context(), "k"); err != nil {
						t.Fatal(err)
					} else if d.Allowed {
						passed++
					}
				}
			}
			if passed != tt.want {
				t.Errorf("%d/day%s over %d replicas: %d passed, want %d", tt.count, algorithm, tt.replicas, passed, tt.want)
			}
		}
	}
}

func TestFailLocalDividesTheBurst(t *testing.T) {
	l := limiterOn(t, failing{errBroken}, headgate.Config{OnStoreError: headgate.FailLocal, Logger: quiet(), Replicas: func() int { return 4 }},
		"10/day burst 40")
	d := mustAllow(t, l, "k", 10)
	if want := parse(t, "2/day burst 10"); d.Limit != want || d.Remaining != 0 {
		t.Errorf("got %+v, want it under %v", d, want)
	}
}

// What a key has used stays with it while the number of replicas changes.
func TestFailLocalWhileReplicasChange(t *testing.T) {
	replicas := 1
	cfg := headgate.Config{OnStoreError: headgate.FailLocal, Logger: quiet(), Replicas: func() int { return replicas }}
	l := limiterOn(t, failing{errBroken}, cfg, "12/day fixed-window")
	mustAllow(t, l, "k", 5)
	replicas = 2
	left(t, l, "k", 1)
	replicas = 3
	mustDeny(t, l, "k", 1)
	replicas = 1
	left(t, l, "k", 7)
}

// Limits come back under their own names and in their order, and limits that differ by their name alone stay apart.
func TestFailLocalNames(t *testing.T) {
	full := strings.Repeat("n", headgate.MaxName)
	limits := []headgate.Limit{
		{Name: "n", Count: 9, Period: time.Hour}, {Name: "t9/hour", Count: 8, Period: time.Hour}, {Count: 7, Period: time.Hour},
		{Name: full, Count: 6, Period: time.Hour}, {Count: 9, Period: time.Hour}, {Name: "t7/hour", Count: 4, Period: time.Hour},
	}
	l, err := headgate.New(failing{errBroken}, limits, headgate.Config{OnStoreError: headgate.FailLocal, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	d := mustAllow(t, l, "k", 3)
	if d.Limit != limits[5] || len(d.States) != len(limits) {
		t.Fatalf("got %+v, want it under %v", d, limits[5])
	}
	for i, s := range d.States {
		if s.Limit != limits[i] || s.Remaining != limits[i].Count-3 {
			t.Errorf("state %d: %+v, want %d left under %v", i, s, limits[i].Count-3, limits[i])
		}
	}
	if d := mustDeny(t, l, "k", 2); d.Limit != limits[5] || d.Source != headgate.FromLocal {
		t.Errorf("denied: %+v", d)
	}
}

// What is above this replica's share may yet be granted by the store: only what is above the limit itself is never.
func TestFailLocalNever(t *testing.T) {
	cfg := headgate.Config{OnStoreError: headgate.FailLocal, Logger: quiet(), Replicas: func() int { return 10 }}
	for _, limits := range [][]string{{"20/hour"}, {"20/hour", "500/hour"}} {
		l := limiterOn(t, failing{errBroken}, cfg, limits...)
		if d := mustDeny(t, l, "k", 20); d.RetryAfter != time.Second {
			t.Errorf("%v: the whole limit: %+v, want a hint of a second", limits, d)
		}
		if d := mustDeny(t, l, "k", 21); d.RetryAfter != headgate.Never || d.Limit.Count != 2 {
			t.Errorf("%v: above the limit: %+v, want Never", limits, d)
		}
	}
}

// A store that hangs costs four fifths of the time-out; the rest is for whoever asked to have the answer in time.
func TestTimeout(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{0: headgate.DefaultTimeout / 5 * 4, 7 * time.Millisecond: 5600 * time.Microsecond} {
		synctest.Test(t, func(t *testing.T) {
			l := limiterOn(t, hanging{}, headgate.Config{Timeout: timeout, Logger: quiet()}, "5/s")
			for name, call := range map[string]func() error{
				"allow":  func() error { _, err := l.Allow(t.Context(), "k"); return err },
				"refund": func() error { return l.Refund(t.Context(), "k", 1) },
				"reset":  func() error { return l.Reset(t.Context(), "k") },
				"wait":   func() error { return l.Wait(t.Context(), "k", 1) },
			} {
				start := time.Now()
				err := call()
				if !errors.Is(err, headgate.ErrStore) || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != want {
					t.Errorf("%s: %v after %v, want ErrStore after %v", name, err, time.Since(start), want)
				}
			}
		})
	}
}

func TestNoTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiterOn(t, slow{inMemory(t), time.Hour}, headgate.Config{Timeout: -1}, "5/s")
		if d := mustAllow(t, l, "k", 1); d.Source != headgate.FromStore || d.Remaining != 4 {
			t.Errorf("got %+v", d)
		}
	})
}

// A store that takes no notice of the context has decided when it returns: its decision stands.
func TestStoreThatIgnoresTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiterOn(t, slow{inMemory(t), time.Second}, headgate.Config{OnStoreError: headgate.FailOpen}, "5/hour")
		if d := mustAllow(t, l, "k", 5); d.Source != headgate.FromStore {
			t.Errorf("got %+v", d)
		}
		if d := mustDeny(t, l, "k", 1); d.Source != headgate.FromStore {
			t.Errorf("got %+v", d)
		}
	})
}

// A caller that gave up is no outage: no failure mode answers it, and nothing is logged.
func TestCallersCancellationIsNoOutage(t *testing.T) {
	for _, mode := range []headgate.FailureMode{headgate.FailClosed, headgate.FailOpen, headgate.FailLocal} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			l := limiterOn(t, hanging{}, headgate.Config{OnStoreError: mode, Logger: slog.New(slog.NewTextHandler(&log, nil))}, "5/s")
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			d, err := l.Allow(ctx, "k")
			if d.Allowed || d.Source != headgate.FromClosed || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, headgate.ErrStore) {
				t.Errorf("%v: %+v, %v", mode, d, err)
			}
			if log.Len() != 0 {
				t.Errorf("%v: logged %s", mode, &log)
			}
		})
	}
}

// A store that refuses the request is not away: no failure mode answers for it.
func TestRefusalIsNoOutage(t *testing.T) {
	for _, refusal := range []error{headgate.ErrInvalidCharge, headgate.ErrInvalidLimit} {
		l := limiterOn(t, failing{refusal}, headgate.Config{OnStoreError: headgate.FailOpen, Logger: quiet()}, "5/s")
		if d, err := l.Allow(t.Context(), "k"); d.Allowed || !errors.Is(err, refusal) || errors.Is(err, headgate.ErrStore) {
			t.Errorf("%+v, %v, want a denial with %v", d, err, refusal)
		}
	}
}

// An outage logs at most one line a second, which says how many failures had none.
func TestOutageLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		l := limiterOn(t, failing{errBroken}, headgate.Config{OnStoreError: headgate.FailOpen, Logger: slog.New(slog.NewTextHandler(&log, nil))}, "5/s")
		for range 300 { // three seconds
			mustAllow(t, l, "secret-key", 1)
			time.Sleep(10 * time.Millisecond)
		}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 3 {
			t.Fatalf("%d lines, want 3:\n%s", len(lines), &log)
		}
		for i, line := range lines {
			count := "not_logged=99"
			if i == 0 {
				count = "not_logged=0"
			}
			for _, want := range []string{"level=ERROR", `msg="headgate: store cannot answer"`, "failure_mode=open", count, "connection refused"} {
				if !strings.Contains(line, want) {
					t.Errorf("line %d lacks %s: %s", i+1, want, line)
				}
			}
			if strings.Contains(line, "secret-key") {
				t.Errorf("line %d holds the key: %s", i+1, line)
			}
		}
	})
}

// A second is a second, also across the edge of one.
func TestOutageLogAcrossSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		l := limiterOn(t, failing{errBroken}, headgate.Config{OnStoreError: headgate.FailOpen, Logger: slog.New(slog.NewTextHandler(&log, nil))}, "5/s")
		time.Sleep(950 * time.Millisecond)
		for _, tt := range []struct {
			wait  time.Duration
			lines int
		}{{0, 1}, {100 * time.Millisecond, 1}, {899 * time.Millisecond, 1}, {time.Millisecond, 2}} {
			time.Sleep(tt.wait)
			mustAllow(t, l, "k", 1)
			if got := strings.Count(log.String(), "\n"); got != tt.lines {
				t.Errorf("%d lines after %v more, want %d", got, tt.wait, tt.lines)
			}
		}
	})
}

func TestFailureModeString(t *testing.T) {
	for m, want := range map[headgate.FailureMode]string{
		headgate.FailClosed: "closed", headgate.FailOpen: "open", headgate.FailLocal: "local", 9: "mode(9)",
	} {
		if got := m.String(); got != want {
			t.Errorf("%d: %q, want %q", uint8(m), got, want)
		}
	}
}
