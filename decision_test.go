package headgate_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

func TestChargeValidate(t *testing.T) {
	limit := headgate.PerSecond(1)
	for _, tt := range []struct {
		charge headgate.Charge
		want   error
	}{
		{headgate.Charge{Key: "k", Cost: 1, Limit: limit}, nil},
		{headgate.Charge{Key: "k", Limit: limit}, nil},
		{headgate.Charge{Key: "k", Cost: math.MaxInt64, Limit: limit}, nil},
		{headgate.Charge{Key: "\x00\xff{}\n", Cost: 1, Limit: limit}, nil},
		{headgate.Charge{Key: strings.Repeat("k", headgate.MaxKey), Cost: 1, Limit: limit}, nil},
		{headgate.Charge{Key: strings.Repeat("k", headgate.MaxKey+1), Cost: 1, Limit: limit}, headgate.ErrInvalidCharge},
		{headgate.Charge{Cost: 1, Limit: limit}, headgate.ErrInvalidCharge},
		{headgate.Charge{Key: "k", Cost: -1, Limit: limit}, headgate.ErrInvalidCharge},
		{headgate.Charge{Key: "k", Cost: math.MinInt64, Limit: limit}, headgate.ErrInvalidCharge},
		{headgate.Charge{Key: "k", Cost: 1}, headgate.ErrInvalidLimit},
	} {
		if err := tt.charge.Validate(); !errors.Is(err, tt.want) {
			t.Errorf("key of %d bytes, cost %d, %v: %v, want %v", len(tt.charge.Key), tt.charge.Cost, tt.charge.Limit, err, tt.want)
		}
	}
}

// The binding limit is the one that denied, of several the one with the longest wait, then the first; else the one with least left.
func TestDecide(t *testing.T) {
	at := time.UnixMicro(12345)
	ok := func(remaining int64) headgate.State { return headgate.State{Allowed: true, Remaining: remaining} }
	no := func(remaining int64, wait time.Duration) headgate.State {
		return headgate.State{Remaining: remaining, RetryAfter: wait}
	}
	for _, tt := range []struct {
		name    string
		states  []headgate.State
		allowed bool
		binding int
	}{
		{"one, allowed", []headgate.State{ok(3)}, true, 0},
		{"one, denied", []headgate.State{no(3, time.Second)}, false, 0},
		{"the least left", []headgate.State{ok(3), ok(1), ok(2)}, true, 1},
		{"the first of the least left", []headgate.State{ok(3), ok(1), ok(1)}, true, 1},
		{"the one that denied, though another has less left", []headgate.State{ok(0), no(5, time.Second), ok(0)}, false, 1},
		{"the longest wait", []headgate.State{no(0, time.Second), no(9, time.Minute), ok(0), no(0, time.Millisecond)}, false, 1},
		{"the first of the longest waits", []headgate.State{ok(1), no(0, time.Minute), no(0, time.Minute)}, false, 1},
		{"never is longer than any wait", []headgate.State{no(0, time.Hour), no(0, headgate.Never), no(0, headgate.Never)}, false, 1},
	} {
		for i := range tt.states {
			tt.states[i].Limit = headgate.PerSecond(int64(i + 1))
			tt.states[i].ResetAfter = time.Duration(i+1) * time.Second
		}
		want := tt.states[tt.binding]
		got := headgate.Decide(at, slices.Clone(tt.states))
		if got.Allowed != tt.allowed || got.Limit != want.Limit || got.Remaining != want.Remaining ||
			got.RetryAfter != want.RetryAfter || got.ResetAfter != want.ResetAfter || !got.At.Equal(at) || got.Source != headgate.FromStore {
			t.Errorf("%s: %+v, want that of state %d", tt.name, got, tt.binding)
		}
		if len(tt.states) == 1 && got.States != nil || len(tt.states) > 1 && !slices.Equal(got.States, tt.states) {
			t.Errorf("%s: states %v", tt.name, got.States)
		}
	}
	if d := headgate.Decide(at, nil); d.Allowed || d.States != nil {
		t.Errorf("of nothing: %+v, want the zero Decision", d)
	}
}

func TestSourceString(t *testing.T) {
	for s, want := range map[headgate.Source]string{
		headgate.FromStore: "store", headgate.FromLocal: "local", headgate.FromOpen: "open", headgate.FromClosed: "closed",
		headgate.FromLease: "lease", headgate.FromCache: "cache", 77: "source(77)",
	} {
		if got := s.String(); got != want {
			t.Errorf("%d: %q, want %q", uint8(s), got, want)
		}
	}
}
