package storetest

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/headgate/headgate"
)

// testInvalid: what is invalid is refused by every method before anything else is done: even with a context that has ended, and in the
// company of valid charges, of which none is made.
func testInvalid(t *testing.T, store headgate.Store) {
	key, limit := newKey(t), headgate.PerDay(10)
	good := headgate.Charge{Key: key, Cost: 1, Limit: limit}
	many := make([]headgate.Charge, headgate.MaxCharges)
	for i := range many {
		many[i] = good
	}
	named, other := limit, limit
	named.Name, other.Name, other.Count = "plan", "plan", 20
	tests := []struct {
		name    string
		want    error
		charges []headgate.Charge
	}{
		{"no key", headgate.ErrInvalidCharge, []headgate.Charge{{Cost: 1, Limit: limit}}},
		{"long key", headgate.ErrInvalidCharge, []headgate.Charge{{Key: strings.Repeat("k", headgate.MaxKey+1), Cost: 1, Limit: limit}}},
		{"negative cost", headgate.ErrInvalidCharge, []headgate.Charge{{Key: key, Cost: -1, Limit: limit}}},
		{"no limit", headgate.ErrInvalidLimit, []headgate.Charge{{Key: key, Cost: 1}}},
		{"negative count", headgate.ErrInvalidLimit, []headgate.Charge{{Key: key, Cost: 1, Limit: headgate.PerSecond(-1)}}},
		{"too many", headgate.ErrInvalidCharge, append([]headgate.Charge{good}, many...)},
		{"two limits of one name", headgate.ErrInvalidCharge, []headgate.Charge{{Key: key, Cost: 1, Limit: named}, {Key: key, Cost: 1, Limit: other}}},
		{"the second", headgate.ErrInvalidCharge, []headgate.Charge{good, {Key: key, Cost: math.MinInt64, Limit: limit}}},
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range tests {
		first, more := tt.charges[0], tt.charges[1:]
		_, err := store.Take(ended, first, more...)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: Take returned %v, want %v", tt.name, err, tt.want)
		}
		if err := store.Refund(ended, first, more...); !errors.Is(err, tt.want) {
			t.Errorf("%s: Refund returned %v, want %v", tt.name, err, tt.want)
		}
		if err := store.Reset(ended, first, more...); !errors.Is(err, tt.want) {
			t.Errorf("%s: Reset returned %v, want %v", tt.name, err, tt.want)
		}
		if _, err := store.Take(t.Context(), first, more...); !errors.Is(err, tt.want) {
			t.Errorf("%s: Take returned %v, want %v", tt.name, err, tt.want)
		}
	}
	subject{store, key, limit}.left(t, 10)
}

// testDecision: a Decision says what it is about, who made it and when.
func testDecision(t *testing.T, store headgate.Store) {
	each(t, store, 10, func(t *testing.T, s subject) {
		s.limit.Name = "plan"
		first := s.allowed(t, 4, 6)
		if first.Limit != s.limit || first.Source != headgate.FromStore || first.States != nil {
			t.Errorf("%+v, want it about %+v, from the store, without states", first, s.limit)
		}
		if first.At.IsZero() || first.At.Nanosecond()%1000 != 0 {
			t.Errorf("At %v, want the instant in whole microseconds", first.At)
		}
		if first.ResetAfter <= 0 || first.ResetAfter > 2*s.limit.Period {
			t.Errorf("ResetAfter %v, want one within two periods", first.ResetAfter)
		}
		second := s.denied(t, 7, 6)
		if second.Limit != s.limit || second.At.Before(first.At) {
			t.Errorf("%+v, want it about %+v, not before %v", second, s.limit, first.At)
		}
	})
}

func testDenialChargesNothing(t *testing.T, store headgate.Store) {
	each(t, store, 10, func(t *testing.T, s subject) {
		s.allowed(t, 7, 3)
		for range 5 {
			s.denied(t, 4, 3)
		}
		s.allowed(t, 3, 0)
		for range 5 {
			s.denied(t, 1, 0)
		}
		s.refund(t, t.Context(), 1)
		s.allowed(t, 1, 0)
	})
}

func testPeek(t *testing.T, store headgate.Store) {
	each(t, store, 10, func(t *testing.T, s subject) {
		for range 3 {
			if d := s.allowed(t, 0, 10); d.ResetAfter != 0 {
				t.Fatalf("ResetAfter %v of a key never used", d.ResetAfter)
			}
		}
		s.allowed(t, 10, 0)
		for range 3 {
			s.left(t, 0)
		}
		s.denied(t, 1, 0)
	})
}

func testCapacity(t *testing.T, store headgate.Store) {
	each(t, store, 10, func(t *testing.T, s subject) {
		for _, cost := range []int64{11, headgate.MaxCount + 1, math.MaxInt64} {
			if d := s.denied(t, cost, 10); d.RetryAfter != headgate.Never {
				t.Errorf("RetryAfter of %d is %v, want Never", cost, d.RetryAfter)
			}
		}
		s.allowed(t, 10, 0)
		if d := s.denied(t, 10, 0); d.RetryAfter > 2*s.limit.Period {
			t.Errorf("RetryAfter of the capacity is %v, want at most two periods", d.RetryAfter)
		}
	})
	burst := subject{store, newKey(t), headgate.Limit{Count: 10, Period: headgate.MaxPeriod, Burst: 25}}
	burst.denied(t, 26, 25)
	burst.allowed(t, 25, 0)
	burst.denied(t, 1, 0)
}

func testZeroLimit(t *testing.T, store headgate.Store) {
	each(t, store, 0, func(t *testing.T, s subject) {
		s.left(t, 0)
		if d := s.denied(t, 1, 0); d.RetryAfter != headgate.Never || d.ResetAfter != 0 {
			t.Errorf("%+v, want RetryAfter Never and nothing to reset", d)
		}
	})
}

func testRefund(t *testing.T, store headgate.Store) {
	each(t, store, 10, func(t *testing.T, s subject) {
		s.refund(t, t.Context(), 5) // a key never seen
		s.left(t, 10)
		first := s.allowed(t, 8, 2)
		s.refund(t, t.Context(), 0)
		s.left(t, 2)
		s.refund(t, headgate.WithTakenAt(t.Context(), first.At), 3)
		s.left(t, 5)
		s.refund(t, t.Context(), 2)
		s.left(t, 7)
		s.refund(t, t.Context(), math.MaxInt64) // never above the capacity
		s.allowed(t, 10, 0)
		s.denied(t, 1, 0)
		s.of(s.key+"x").refund(t, t.Context(), 9)
		s.left(t, 0)
	})
}

// testRefundOfAnotherWindow: tokens that were taken in a window of long ago are not given back into the one under way.
func testRefundOfAnotherWindow(t *testing.T, store headgate.Store) {
	each(t, store, 10, func(t *testing.T, s subject) {
		if s.limit.Algorithm == headgate.TokenBucket {
			return // it has no windows
		}
		d := s.allowed(t, 10, 0)
		s.refund(t, headgate.WithTakenAt(t.Context(), d.At.Add(-3*s.limit.Period)), 10)
		s.left(t, 0)
		s.refund(t, headgate.WithTakenAt(t.Context(), d.At), 4)
		s.left(t, 4)
	})
}

func testReset(t *testing.T, store headgate.Store) {
	each(t, store, 10, func(t *testing.T, s subject) {
		other := s.of(s.key + "x")
		reset := func(charges ...headgate.Charge) {
			t.Helper()
			if err := store.Reset(t.Context(), charges[0], charges[1:]...); err != nil {
				t.Fatalf("Reset: %v", err)
			}
		}
		reset(s.charge(0)) // a key never seen
		s.allowed(t, 10, 0)
		other.allowed(t, 10, 0)
		reset(s.charge(3))
		if d := s.allowed(t, 0, 10); d.ResetAfter != 0 {
			t.Errorf("ResetAfter %v after a reset", d.ResetAfter)
		}
		other.left(t, 0)
		s.allowed(t, 10, 0)
		reset(s.charge(0), other.charge(0), s.charge(0))
		s.left(t, 10)
		other.left(t, 10)
	})
}

// testCanceledContext: a context that has ended before the call either keeps the store from doing anything, and is an error, or does
// not matter; never an error and a charge.
func testCanceledContext(t *testing.T, store headgate.Store) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	each(t, store, 10, func(t *testing.T, s subject) {
		d, err := store.Take(ended, s.charge(4))
		switch {
		case err != nil:
			s.left(t, 10)
		case !d.Allowed || d.Remaining != 6:
			t.Errorf("%+v, want 4 of 10 taken", d)
		default:
			s.left(t, 6)
		}
	})
}
