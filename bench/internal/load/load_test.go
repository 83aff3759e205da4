package load_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate/bench/internal/load"
)

var errNo = errors.New("no")

func TestTurn(t *testing.T) {
	var calls, granted atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	turn := load.Turn{Callers: 4, Keys: []string{"a", "b", "error"}, For: time.Hour, Sample: 1, Decide: func(_ context.Context, key string) (bool, error) {
		if calls.Add(1) == 1000 {
			cancel()
		}
		switch key {
		case "a":
			granted.Add(1)
			return true, nil
		case "b":
			return false, nil
		}
		return false, errNo
	}}
	r := turn.Run(ctx)
	if r.Grants[0] != granted.Load() || r.Grants[1] != 0 || r.Grants[2] != 0 || granted.Load() == 0 {
		t.Errorf("grants %v, want %d of the first key alone", r.Grants, granted.Load())
	}
	// A call that fails as the run is cancelled counts for nothing, and each caller may have one.
	if sum := r.Decided + r.Errors; sum < 996 || sum > calls.Load() || r.Errors == 0 || !errors.Is(r.Err, errNo) {
		t.Errorf("%d decided, %d errors (%v) of %d calls", r.Decided, r.Errors, r.Err, calls.Load())
	}
	if n := r.Latency.Count(); n != calls.Load() {
		t.Errorf("%d calls timed, want all %d", n, calls.Load())
	}
	if r.Elapsed <= 0 || r.Rate() != float64(r.Decided)/r.Elapsed.Seconds() {
		t.Errorf("rate %v of %d in %v", r.Rate(), r.Decided, r.Elapsed)
	}
}

// Every caller asks once, however short the turn is.
func TestTurnOfNoTime(t *testing.T) {
	turn := load.Turn{Callers: 8, Keys: []string{"a"}, Sample: 1, Decide: func(context.Context, string) (bool, error) { return true, nil }}
	if r := turn.Run(t.Context()); r.Grants[0] < 8 || r.Decided != r.Grants[0] {
		t.Errorf("%d decided, %v granted; want 8 or more", r.Decided, r.Grants)
	}
}

func TestTurnIsSampled(t *testing.T) {
	var calls atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	turn := load.Turn{Callers: 1, Keys: []string{"a"}, For: time.Hour, Sample: 10, Decide: func(context.Context, string) (bool, error) {
		if calls.Add(1) == 95 {
			cancel()
		}
		return true, nil
	}}
	if n := turn.Run(ctx).Latency.Count(); n != 10 {
		t.Errorf("%d of 95 calls timed, want 10", n)
	}
}

func TestExcess(t *testing.T) {
	r := load.Result{Elapsed: 2500 * time.Millisecond, Grants: []int64{0, 125, 126, 130, 200}}
	if got := r.Excess(load.Bucket(100, 10, time.Second)); got != 1+5+75 { // permits 125
		t.Errorf("excess over a bucket: %d, want 81", got)
	}
	if got := r.Excess(load.Windows(31, time.Second)); got != 1+2+6+76 { // permits 124
		t.Errorf("excess over windows: %d, want 85", got)
	}
}
