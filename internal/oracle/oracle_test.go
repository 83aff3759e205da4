package oracle_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/oracle"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func limit(t *testing.T, text string) headgate.Limit {
	t.Helper()
	l, err := headgate.ParseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestTake: each row takes 2 at noon and asks for 2 more half a second later; the model must find the waits by itself.
func TestTake(t *testing.T) {
	const ms = time.Millisecond
	tests := []struct {
		limit        string
		allowed      bool
		left         int64
		retry, reset time.Duration
	}{
		{"4/s", true, 2, 0, 500 * ms},                                            // 2 in use have drained, and 2 are again
		{"3/s", true, 0, 0, 833334 * time.Microsecond},                           // 0.5 in use, and 2 more
		{"3/2s", false, 1, 166667 * time.Microsecond, 833334 * time.Microsecond}, // 1.25 in use
		{"1/s burst 2", false, 0, 1500 * ms, 1500 * ms},
		{"3/s fixed-window", false, 1, 500 * ms, 500 * ms},
		{"3/s aligned-window", false, 1, 500 * ms, 500 * ms},
		{"3/s sliding-window", false, 1, 1000 * ms, 1500 * ms}, // 2 of the window before weigh 1 in the middle of the next
		{"3/s sliding-log", false, 1, 500 * ms, 500 * ms},
		{"1/s", false, 1, headgate.Never, 0},
		{"0/s sliding-window", false, 0, headgate.Never, 0},
	}
	for _, tt := range tests {
		m, charge := oracle.New(), headgate.Charge{Key: "ann", Cost: 2, Limit: limit(t, tt.limit)}
		m.Take(noon, headgate.Decision{}, charge)
		got := m.Take(noon.Add(500*ms), headgate.Decision{}, charge)
		if got.Allowed != tt.allowed || got.Remaining != tt.left || got.RetryAfter != tt.retry || got.ResetAfter != tt.reset {
			t.Errorf("%s: %+v, want %+v", tt.limit, got, tt)
		}
	}
}

// TestGuess: a wrong guess changes nothing.
func TestGuess(t *testing.T) {
	for _, text := range []string{"3/s", "3/s fixed-window", "3/s aligned-window", "3/s sliding-window", "3/s sliding-log"} {
		charge := headgate.Charge{Key: "ann", Cost: 2, Limit: limit(t, text)}
		ask := func(guess headgate.Decision) headgate.Decision {
			m := oracle.New()
			m.Take(noon.Add(-time.Second), headgate.Decision{}, charge)
			m.Take(noon.Add(300*time.Millisecond), headgate.Decision{}, charge)
			return m.Take(noon.Add(400*time.Millisecond), guess, charge)
		}
		want := ask(headgate.Decision{})
		for _, wait := range []time.Duration{-time.Hour, time.Microsecond, time.Second, 1000 * 24 * time.Hour, headgate.Never, want.RetryAfter, want.ResetAfter} {
			if got := ask(headgate.Decision{RetryAfter: wait, ResetAfter: wait}); !reflect.DeepEqual(got, want) {
				t.Errorf("%s, guess %v: %+v, want %+v", text, wait, got, want)
			}
		}
	}
}
