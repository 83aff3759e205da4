package trial_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/bench/internal/load"
	"github.com/headgate/headgate/bench/internal/report"
	"github.com/headgate/headgate/bench/internal/trial"
)

func TestTurns(t *testing.T) {
	var order strings.Builder
	var said []string
	s := trial.Settings{Rounds: 4, Progress: func(text string) { said = append(said, text) }}
	err := s.Turns(t.Context(), []string{"a", "b", "c"}, func(i int) (string, error) {
		order.WriteByte("abc"[i])
		return strings.Repeat("x", i), nil
	})
	if want := "abcbcacababc"; order.String() != want || err != nil {
		t.Errorf("order %q, %v; want %q", &order, err, want)
	}
	if len(said) != 4 || said[1] != "round 2 of 4: a , b x, c xx" {
		t.Errorf("said %q", said)
	}
}

func TestTurnsEnd(t *testing.T) {
	s := trial.Settings{Rounds: 2, Progress: func(string) {}}
	why, turns := errors.New("why"), 0
	err := s.Turns(t.Context(), []string{"a", "b"}, func(int) (string, error) { turns++; return "", why })
	if !errors.Is(err, why) || !strings.HasPrefix(err.Error(), "a: ") || turns != 1 {
		t.Errorf("%v after %d turns, want the error of a after one", err, turns)
	}
	ctx, cancel := context.WithCancel(t.Context())
	turns = 0
	err = s.Turns(ctx, []string{"a", "b"}, func(int) (string, error) { turns++; cancel(); return "", nil })
	if !errors.Is(err, context.Canceled) || turns != 1 {
		t.Errorf("%v after %d turns, want it cancelled after one", err, turns)
	}
}

// One contender keeps to the limit, one grants all, one fails.
func TestWork(t *testing.T) {
	const allowed = 3
	granted := 0
	failure := errors.New("cannot")
	decides := []load.Decide{
		func(context.Context, string) (bool, error) { granted++; return granted <= allowed, nil },
		func(context.Context, string) (bool, error) { return true, nil },
		func(context.Context, string) (bool, error) { return false, failure },
		func(context.Context, string) (bool, error) { return true, nil },
	}
	entries := make([]report.Entry, len(decides))
	var seats []trial.Seat
	for i, d := range decides {
		seats = append(seats, trial.Seat{Decide: d, Permits: func(time.Duration) int64 { return allowed }, Entry: &entries[i]})
	}
	seats[3].Permits = nil
	w := trial.Work{Callers: 1, Keys: trial.Tenants(1), Sample: 1}
	s := trial.Settings{Rounds: 2, Turn: time.Millisecond, Progress: func(string) {}}
	if err := w.Run(t.Context(), s, seats); err != nil {
		t.Fatal(err)
	}
	for i, e := range entries {
		for _, c := range w.Columns() {
			if len(e.Figures[c.Name]) != 2 {
				t.Errorf("contender %d, %s: %v, want a figure of each round", i, c.Name, e.Figures[c.Name])
			}
		}
	}
	if e := entries[0]; !e.Checked || e.Excess != 0 || e.Errors != 0 {
		t.Errorf("who keeps to the limit: %+v", e)
	}
	if e := entries[1]; !e.Checked || e.Excess == 0 || e.Errors != 0 {
		t.Errorf("who grants all: %+v", e)
	}
	if e := entries[2]; e.Errors == 0 || e.Error != "cannot" || slices.Max(e.Figures[trial.Throughput]) != 0 {
		t.Errorf("who fails: %+v", e)
	}
	if e := entries[3]; e.Checked || e.Excess != 0 {
		t.Errorf("who has no limit: %+v", e)
	}
}

func TestTenants(t *testing.T) {
	if got := trial.Tenants(2); !slices.Equal(got, []string{"tenant:0", "tenant:1"}) {
		t.Errorf("%q", got)
	}
}
