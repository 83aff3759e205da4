package lease_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/lease"
)

const ms = time.Millisecond

// window is a limit whose tokens do not come back while a test runs.
func window(count int64) headgate.Limit {
	return headgate.Limit{Algorithm: headgate.FixedWindow, Count: count, Period: headgate.MaxPeriod}
}

// leasable are the algorithms that are.
var leasable = []headgate.Algorithm{headgate.TokenBucket, headgate.FixedWindow, headgate.AlignedWindow, headgate.SlidingWindow}

func bubble(t *testing.T, run func(t *testing.T)) { t.Helper(); synctest.Test(t, run) }

// A steady demand well inside the limit costs a call for most of a lifetime.
func TestSteadyDemand(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := open(t, headgate.PerSecond(1000), lease.Config{})
		f.warm(10 * ms)
		time.Sleep(2 * time.Second)
		f.remote.calls()
		for range 6000 { // 100/s for a minute
			if d := f.take(1); !d.Allowed {
				t.Fatalf("%+v", d)
			}
			time.Sleep(10 * ms)
		}
		if n := f.remote.calls(); n > 6000/60 {
			t.Errorf("%d calls of the store for 6000 requests, want at most 100", n)
		}
		if s := f.balance(); s.Stranded > s.Spent/50 {
			t.Errorf("%+v, want little stranded", s)
		}
	})
}

// The first request of a key goes to the store, and what it gets is the store's.
func TestFirstRequestIsTheStores(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := open(t, headgate.PerSecond(100), lease.Config{})
		if d := f.take(1); d.Source != headgate.FromStore || d.Remaining != 99 {
			t.Errorf("%+v", d)
		}
		if s := f.balance(); s.Leased != 0 || s.Decisions != 0 || s.Keys != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// What a decision says counts what is held here, and its instant is not in the future.
func TestDecisionOfALease(t *testing.T) {
	for _, a := range leasable {
		t.Run(a.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				limit := headgate.Limit{Algorithm: a, Count: 1000, Period: headgate.MaxPeriod, Name: "plan"}
				f := open(t, limit, lease.Config{})
				d := f.warm(10 * ms)
				taken := 1000 - d.Remaining // nothing comes back: exact
				for range 3 {
					time.Sleep(10 * ms)
					before := d
					d = f.take(1)
					taken++
					if d.Source != headgate.FromLease || d.Limit != limit || d.RetryAfter != 0 || d.Remaining != 1000-taken {
						t.Errorf("%+v, want 1 less than %d left by lease", d, before.Remaining)
					}
					if now := time.Now(); d.At.Before(before.At) || d.At.After(now) || d.At.Before(now.Add(-3*ms)) || d.At.Nanosecond()%1000 != 0 {
						t.Errorf("at %v, want about %v and not after", d.At, now)
					}
				}
				exact, err := f.remote.Store.Take(t.Context(), f.charge(0))
				if err != nil {
					t.Fatal(err)
				}
				if slip := d.ResetAfter - exact.ResetAfter; slip < 0 || slip > 2*ms {
					t.Errorf("reset after %v, the store says %v", d.ResetAfter, exact.ResetAfter)
				}
				if peek := f.take(0); peek.Remaining != 1000-taken || peek.Source != headgate.FromStore {
					t.Errorf("a look: %+v, want %d left", peek, 1000-taken)
				}
			})
		})
	}
}

// All tokens of a counter can be spent here, to the last, and then the denial is the store's.
func TestSpendsAllAndNoMore(t *testing.T) {
	for _, cost := range []int64{1, 3} {
		bubble(t, func(t *testing.T) {
			f := open(t, window(100), lease.Config{Lifetime: time.Minute})
			granted := int64(0)
			for range 200 {
				if d := f.take(cost); d.Allowed {
					granted += cost
					if d.Remaining != 100-granted {
						t.Errorf("%+v, want %d left", d, 100-granted)
					}
				}
				time.Sleep(ms)
			}
			if granted != 100/cost*cost {
				t.Errorf("%d granted by costs of %d, want all of 100 that can be", granted, cost)
			}
			d := f.take(2)
			if want, _ := f.remote.Store.Take(t.Context(), f.charge(2)); d.RetryAfter-want.RetryAfter != ms || d.Allowed || d.Source != headgate.FromStore {
				t.Errorf("%+v, want the denial of the store, %+v, a millisecond ago", d, want)
			}
		})
	}
}

// A token that was not spent in its time is not spent, and counted.
func TestLeaseEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := open(t, window(1000), lease.Config{Lifetime: time.Second, Timeout: time.Second})
		for f.Stats().Held < 20 {
			time.Sleep(ms)
			f.take(1)
		}
		asked := time.Now().Add(-2 * ms) // the block had its way here
		for range 9 {                    // so often that nothing is idle
			time.Sleep(100 * ms)
			f.take(1)
		}
		held := f.Stats().Held
		time.Sleep(time.Until(asked.Add(time.Second - time.Microsecond)))
		if n := f.Stats().Held; n != held || held == 0 {
			t.Errorf("%d held a microsecond before the end, want %d", n, held)
		}
		time.Sleep(time.Microsecond)
		if s := f.balance(); s.Held != 0 || s.Stranded != held {
			t.Errorf("%+v, want %d stranded and none held", s, held)
		}
	})
}

// Tokens of a window are not spent after its end by the store's clock, however long the way.
func TestLeaseEndsWithItsWindow(t *testing.T) {
	for _, a := range leasable[1:] {
		t.Run(a.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := open(t, headgate.Limit{Algorithm: a, Count: 1000, Period: time.Second}, lease.Config{Lifetime: time.Minute, Timeout: time.Second})
				f.remote.way = 40 * ms
				end := time.Now().Truncate(time.Second).Add(time.Second) // a bubble's clock begins at a whole second
				if a == headgate.FixedWindow {
					end = end.Add(40 * ms) // the way to the store of the first request
				}
				late := 0
				for time.Since(end) < time.Second {
					d := f.take(1)
					if d.Source == headgate.FromLease && !time.Now().Before(end) && d.At.Before(end) {
						late++
					}
					time.Sleep(ms / 2)
				}
				if s := f.Stats(); late > 0 || s.Decisions < 100 {
					t.Errorf("%d decisions of the window after its end, of %+v", late, s)
				}
			})
		})
	}
}

// What is left is given back soon after the demand has ended: of a window all of it, of a bucket what cannot have drained.
func TestGivesBackWhenIdle(t *testing.T) {
	slow := headgate.Limit{Count: 1000, Period: headgate.MaxPeriod}
	for _, limit := range []headgate.Limit{window(1000), slow} {
		bubble(t, func(t *testing.T) {
			f := open(t, limit, lease.Config{})
			f.warm(10 * ms)
			spent := 1000 - f.take(0).Remaining
			time.Sleep(500 * ms)
			s := f.balance()
			lost := int64(0)
			if limit.Algorithm == headgate.TokenBucket {
				lost = 1 // a part of a token may have drained
			}
			if s.Held != 0 || s.Returns != 1 || s.Stranded != lost || f.left() != 1000-spent-lost {
				t.Errorf("%v: %+v and %d left in the store, want %d stranded and the rest given back", limit, s, f.left(), lost)
			}
			time.Sleep(2 * time.Second)
			if n := f.Stats().Keys; n != 0 {
				t.Errorf("%d keys are remembered without a use", n)
			}
		})
	}
}

func TestCloseGivesBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := open(t, window(1000), lease.Config{})
		f.warm(10 * ms)
		spent := 1000 - f.take(0).Remaining
		f.close()
		if s := f.balance(); s.Held != 0 || s.Stranded != 0 || f.left() != 1000-spent {
			t.Errorf("%+v and %d left in the store, want all given back and %d left", s, f.left(), 1000-spent)
		}
		f.remote.calls()
		for range 50 {
			if d := f.take(1); d.Source != headgate.FromStore {
				t.Fatalf("%+v after Close", d)
			}
		}
		if n := f.remote.calls(); n != 50 {
			t.Errorf("%d calls for 50 requests after Close", n)
		}
	})
}

// Close comes to an end with its context, whatever the store does; what is held is then stranded.
func TestCloseIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := open(t, window(1000), lease.Config{Timeout: time.Hour})
		f.warm(10 * ms)
		f.remote.way = time.Hour
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 100*ms)
		defer cancel()
		if err := f.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 100*ms {
			t.Errorf("Close: %v after %v, want the end of its context after 100ms", err, time.Since(start))
		}
		if s := f.balance(); s.Held != 0 || s.Stranded == 0 {
			t.Errorf("%+v, want what was held stranded", s)
		}
	})
}

// A refund goes into the lease while it lasts, and then to the store.
func TestRefund(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := open(t, window(1000), lease.Config{})
		d := f.warm(10 * ms)
		held := f.Stats().Held
		refund := func(at time.Time, n int64) {
			t.Helper()
			if err := f.Refund(headgate.WithTakenAt(t.Context(), at), f.charge(n)); err != nil {
				t.Fatal(err)
			}
		}
		refund(d.At, 1)
		if s := f.balance(); s.Held != held+1 || s.Refunded != 1 || f.remote.returned() != 0 {
			t.Errorf("%+v with %d refunds of the store, want one more than %d held", s, f.remote.returned(), held)
		}
		refund(time.Time{}, 1) // of this lease nothing is spent any more: the store's
		if s := f.balance(); s.Held != held+1 || f.remote.returned() != 1 {
			t.Errorf("%+v with %d refunds of the store, want 1", s, f.remote.returned())
		}
		d = f.take(1)
		refund(d.At.Add(-time.Hour), 1) // taken before this lease began
		if s := f.balance(); s.Held != held || f.remote.returned() != 2 {
			t.Errorf("%+v with %d refunds of the store, want 2", s, f.remote.returned())
		}
		time.Sleep(2 * time.Second)
		left := f.left()
		refund(d.At, 1) // the lease is over, the window is not
		if f.left() != left+1 {
			t.Errorf("%d left after a refund, want %d", f.left(), left+1)
		}
	})
}

// A reset forgets what is held and what is on its way, be it granted before or after: afterwards the limit is granted once, not once and a lease.
func TestReset(t *testing.T) {
	for _, earlier := range []time.Duration{0, 2 * ms} { // the block is granted after 10 ms, the reset comes to the store after 9 or 11
		bubble(t, func(t *testing.T) {
			f := open(t, window(100), lease.Config{Lifetime: time.Minute})
			f.warm(10 * ms)
			f.drain()
			f.remote.way = 10 * ms
			onItsWay := make(chan headgate.Decision)
			go func() { onItsWay <- f.take(1) }()
			synctest.Wait()
			time.Sleep(earlier)
			start := time.Now()
			f.remote.resetWay = 9 * ms
			if err := f.Reset(t.Context(), f.charge(0)); err != nil || time.Since(start) != 9*ms {
				t.Fatal(err, time.Since(start))
			}
			granted, late := int64(0), <-onItsWay
			if late.Allowed {
				granted++ // exactly, by the store, after the reset
			}
			for range 200 {
				if f.take(1).Allowed {
					granted++
				}
				time.Sleep(ms)
			}
			s := f.balance()
			if forgotten := earlier > 0; granted > 100 || forgotten != (granted == 100) || !forgotten && granted != 100-s.Stranded {
				t.Errorf("%d granted after the reset, %+v", granted, s)
			}
		})
	}
}

// While the store is about to forget, nothing is leased: it could be spent beside what is then granted.
func TestNothingIsLeasedDuringReset(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := open(t, window(1000), lease.Config{Lifetime: time.Minute})
		f.warm(10 * ms)
		held := f.Stats().Held
		f.remote.resetWay = time.Second
		done := make(chan error)
		go func() { done <- f.Reset(t.Context(), f.charge(0)) }()
		synctest.Wait()
		for range 20 {
			if d := f.take(1); d.Source != headgate.FromStore {
				t.Fatalf("%+v", d)
			}
			time.Sleep(ms)
		}
		if s := f.balance(); s.Held != 0 || s.Stranded != held {
			t.Errorf("%+v, want %d stranded and none held", s, held)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if f.warm(ms); f.take(0).Remaining < 980 {
			t.Errorf("%d left soon after the reset", f.take(0).Remaining)
		}
	})
}

// A block is no more than half of what the store has left, and no more than a few times the one before.
func TestBlockSizes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := open(t, window(3000), lease.Config{Lifetime: time.Hour})
		for range 3000 {
			f.take(1)
		}
		rest, before, blocks := int64(3000), int64(1), 0
		for _, c := range f.remote.takes {
			if c.Cost > 1 {
				blocks++
				if c.Cost > rest/2 || c.Cost > 1+4*before {
					t.Errorf("a block of %d after one of %d, with %d left", c.Cost, before, rest)
				}
				before = c.Cost - 1
			}
			rest -= c.Cost
		}
		if rest != 0 || blocks < 8 {
			t.Errorf("%d left after %d blocks", rest, blocks)
		}
	})
}

// Under other numbers what was leased under the old ones is not spent.
func TestLimitChange(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limit := window(1000)
		limit.Name = "plan"
		f := open(t, limit, lease.Config{})
		f.warm(10 * ms)
		held := f.Stats().Held
		f.limit.Count = 50
		if d := f.take(1); d.Source != headgate.FromStore || d.Limit.Count != 50 {
			t.Errorf("%+v, want the store's decision under the new limit", d)
		}
		if s := f.balance(); s.Held != 0 || s.Stranded != held {
			t.Errorf("%+v, want %d stranded", s, held)
		}
	})
}

// Charges that are not leased go to the store as they are.
func TestUnleased(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := open(t, headgate.Limit{Algorithm: headgate.SlidingLog, Count: 1000, Period: time.Minute}, lease.Config{})
		for range 100 {
			f.take(1)
		}
		f.limit = headgate.PerSecond(1000)
		f.limit.Name = "not this one"
		g := open(t, f.limit, lease.Config{Leases: func(c headgate.Charge) bool { return c.Limit.Name == "" }})
		for range 100 {
			g.take(1)
		}
		if n, m := f.remote.calls(), g.remote.calls(); n != 100 || m != 100 || f.Stats().Keys+g.Stats().Keys != 0 {
			t.Errorf("%d and %d calls for 100 requests, %d keys", n, m, f.Stats().Keys+g.Stats().Keys)
		}
	})
}

// The number of keys is bounded; the tokens of those that give way are given back.
func TestKeysAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := open(t, window(1000), lease.Config{MaxKeys: 64})
		f.warm(10 * ms)
		spent := 1000 - f.take(0).Remaining
		for i := range 2000 {
			c := f.charge(1)
			c.Key = strconv.Itoa(i)
			if _, err := f.Take(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		if s := f.Stats(); s.Keys > 64 {
			t.Errorf("%d keys, want at most 64", s.Keys)
		}
		time.Sleep(200 * ms)
		if s := f.balance(); s.Returns != 1 || f.left() != 1000-spent {
			t.Errorf("%+v and %d left in the store, want %d left", s, f.left(), 1000-spent)
		}
	})
}

// After a denial requests are decided one by one, whatever it left to smaller ones.
func TestOneByOneAfterADenial(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := open(t, window(1000), lease.Config{})
		f.warm(10 * ms)
		f.drain()
		if d := f.take(999); d.Allowed || d.Remaining < 900 {
			t.Fatalf("%+v, want it denied with much left", d)
		}
		if d := f.take(1); !d.Allowed || d.Source != headgate.FromStore {
			t.Errorf("%+v after a denial, want it from the store", d)
		}
	})
}

// A block that takes longer than its lease has come to nothing, and is counted.
func TestBlockComesTooLate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := open(t, window(1000), lease.Config{Lifetime: lease.MinLifetime, Timeout: time.Second})
		f.remote.way = 0
		f.warm(ms)
		f.drain()
		stranded := f.Stats().Stranded
		f.remote.way = 30 * ms
		if d := f.take(1); !d.Allowed || d.Source != headgate.FromStore {
			t.Errorf("%+v, want it from the store once the block is of no use", d)
		}
		if s := f.balance(); s.Held != 0 || s.Stranded == stranded {
			t.Errorf("%+v, want the block stranded", s)
		}
	})
}

func TestInvalidConfig(t *testing.T) {
	m := newMemory(t)
	for _, cfg := range []lease.Config{
		{Lifetime: -1}, {Lifetime: lease.MinLifetime - 1}, {Lifetime: lease.MaxLifetime + 1}, {Lifetime: time.Second + 1}, {MaxKeys: -1}, {Timeout: -1},
	} {
		if _, err := lease.New(m, cfg); !errors.Is(err, headgate.ErrInvalidConfig) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	if _, err := lease.New(nil, lease.Config{}); !errors.Is(err, headgate.ErrInvalidConfig) {
		t.Errorf("no store: %v", err)
	}
}
