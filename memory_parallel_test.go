package headgate_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// TestMemoryCloseUnderWay: when Close has returned, no call that was under way adds a counter.
func TestMemoryCloseUnderWay(t *testing.T) {
	for round := range 50 {
		m, err := headgate.NewMemory(headgate.MemoryConfig{})
		if err != nil {
			t.Fatal(err)
		}
		var done sync.WaitGroup
		var granted atomic.Int64
		start := make(chan struct{})
		for caller := range 4 {
			done.Go(func() {
				<-start
				for i := 0; ; i++ {
					key := fmt.Sprint(round, caller, i)
					one := headgate.Charge{Key: key, Cost: 1, Limit: headgate.PerDay(5)}
					two := headgate.Charge{Key: key, Cost: 1, Limit: headgate.PerHour(5)}
					if _, err := m.Take(t.Context(), one); err != nil {
						if !errors.Is(err, headgate.ErrClosed) {
							t.Error(err)
						}
						return
					}
					granted.Add(1)
					_, _ = m.Take(t.Context(), one, two)
				}
			})
		}
		close(start)
		for granted.Load() < 20 {
			_ = m.Len()
		}
		_ = m.Close()
		if n := m.Len(); n != 0 {
			t.Errorf("%d counters held after Close", n)
		}
		done.Wait()
		if n := m.Len(); n != 0 {
			t.Errorf("%d counters held after Close, when all calls are done", n)
		}
	}
}

// TestMemoryParallel: of many callers of one key exactly as many are let through as there are tokens, by each algorithm; each number of
// tokens that a grant leaves is seen once; and a request of several charges, in any order, never waits for another for good.
func TestMemoryParallel(t *testing.T) {
	const callers, each, count = 8, 400, 1_000
	for a := headgate.TokenBucket; a <= headgate.SlidingLog; a++ {
		t.Run(a.String(), func(t *testing.T) {
			m, _ := newMemory(t, 0)
			limits := [2]headgate.Limit{{Algorithm: a, Count: count, Period: time.Hour}, {Algorithm: a, Count: count, Period: 2 * time.Hour}}
			var left [count]atomic.Int32
			var allowed atomic.Int64
			var done sync.WaitGroup
			for caller := range callers {
				done.Go(func() {
					for range each {
						i := caller % 2
						d, err := m.Take(t.Context(), headgate.Charge{Key: "ann", Cost: 1, Limit: limits[i]}, headgate.Charge{Key: "ann", Cost: 1, Limit: limits[1-i]})
						if err != nil {
							t.Error(err)
							return
						}
						if d.Allowed {
							allowed.Add(1)
							left[d.Remaining].Add(1)
						}
					}
				})
			}
			done.Wait()
			if allowed.Load() != count {
				t.Errorf("%d allowed, want %d", allowed.Load(), count)
			}
			for i := range left {
				if n := left[i].Load(); n != 1 {
					t.Fatalf("%d grants left %d tokens, want 1", n, i)
				}
			}
		})
	}
}

// TestMemoryInstants: by its own clock, and whoever asks, the decisions of one key are in the order of their instants: a grant that leaves fewer
// tokens, of a bucket that does not fill meanwhile, is not earlier.
func TestMemoryInstants(t *testing.T) {
	const callers, each = 8, 2_000
	m, err := headgate.NewMemory(headgate.MemoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	limit := headgate.Limit{Algorithm: headgate.FixedWindow, Count: callers * each, Period: 24 * time.Hour}
	instants := make([]time.Time, callers*each) // by the tokens left
	var done sync.WaitGroup
	for range callers {
		done.Go(func() {
			for range each {
				d, err := m.Take(t.Context(), headgate.Charge{Key: "ann", Cost: 1, Limit: limit})
				if err != nil {
					t.Error(err)
					return
				}
				instants[d.Remaining] = d.At
			}
		})
	}
	done.Wait()
	for left := range len(instants) - 1 {
		if instants[left].Before(instants[left+1]) {
			t.Fatalf("the grant that left %d was at %v, that which left %d before it at %v", left, instants[left], left+1, instants[left+1])
		}
	}
}

// TestMemoryManyLimits: a Memory keeps what it worked out for a few limits; those it does not keep are decided as well, names of
// one length and like numbers included, and without an allocation each.
func TestMemoryManyLimits(t *testing.T) {
	m, _ := newMemory(t, 1<<16)
	var limits []headgate.Limit
	for i := range 2_000 {
		limits = append(limits,
			headgate.Limit{Count: int64(i + 1), Period: time.Hour},
			headgate.Limit{Name: fmt.Sprintf("plan-%04d-a", i), Count: 7, Period: time.Hour})
	}
	for round := range int64(3) {
		for _, limit := range limits {
			d := take(t, m, "ann", 1, limit)
			if want := max(0, limit.Count-1-round); d.Remaining != want || d.Limit != limit {
				t.Fatalf("round %d: %+v, want %d left", round, d, want)
			}
		}
	}
	i := 0
	if n := testing.AllocsPerRun(len(limits), func() {
		take(t, m, "ann", 1, limits[i%len(limits)])
		i++
	}); n != 0 {
		t.Errorf("%v allocations for a limit that is not kept", n)
	}
}

// TestMemoryLimitKept: a limit that was found valid once does not make a charge valid, nor another limit of the same name.
func TestMemoryLimitKept(t *testing.T) {
	m, _ := newMemory(t, 0)
	limit := headgate.Limit{Name: "plan", Count: 5, Period: time.Hour}
	take(t, m, "ann", 1, limit)
	bad := limit
	bad.Burst = -1
	for _, c := range []headgate.Charge{
		{Key: "", Cost: 1, Limit: limit},
		{Key: "ann", Cost: -1, Limit: limit},
		{Key: string(make([]byte, headgate.MaxKey+1)), Cost: 1, Limit: limit},
	} {
		if _, err := m.Take(t.Context(), c); !errors.Is(err, headgate.ErrInvalidCharge) {
			t.Errorf("error %v, want ErrInvalidCharge", err)
		}
	}
	if _, err := m.Take(t.Context(), headgate.Charge{Key: "ann", Cost: 1, Limit: bad}); !errors.Is(err, headgate.ErrInvalidLimit) {
		t.Errorf("error %v, want ErrInvalidLimit", err)
	}
	if d := take(t, m, "ann", 1, headgate.Limit{Name: "plan", Count: 9, Period: time.Hour}); d.Remaining != 7 || d.Limit.Count != 9 {
		t.Errorf("%+v, want 7 of 9 left: two used, under the old numbers and the new", d)
	}
}

// TestMemoryWideState: tokens by the hundred trillion do not fit where others do, and are counted as exactly.
func TestMemoryWideState(t *testing.T) {
	m, now := newMemory(t, 0)
	for a := headgate.TokenBucket; a <= headgate.SlidingWindow; a++ {
		limit := headgate.Limit{Algorithm: a, Count: headgate.MaxCount, Period: time.Hour}
		for _, step := range []struct{ cost, left int64 }{
			{1, headgate.MaxCount - 1}, {headgate.MaxCount - 3, 2}, {3, 2}, {1, 1}, {1, 0},
		} {
			if d := take(t, m, "ann", step.cost, limit); d.Remaining != step.left || d.Allowed != (step.cost != 3) {
				t.Errorf("%v, cost %d: %+v, want %d left", a, step.cost, d, step.left)
			}
		}
		if err := m.Refund(t.Context(), headgate.Charge{Key: "ann", Cost: headgate.MaxCount - 5, Limit: limit}); err != nil {
			t.Fatal(err)
		}
		if d := take(t, m, "ann", 0, limit); d.Remaining != headgate.MaxCount-5 {
			t.Errorf("%v: %+v after a refund, want 5 in use", a, d)
		}
	}
	*now = now.Add(1_000_000 * time.Hour) // past what a slot holds of instants
	if d := take(t, m, "ann", 4, headgate.PerHour(10)); d.Remaining != 6 {
		t.Errorf("%+v, want 6 left", d)
	}
	if d := take(t, m, "ann", 1, headgate.PerHour(10)); d.Remaining != 5 {
		t.Errorf("%+v, want 5 left", d)
	}
}
