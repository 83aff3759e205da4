// Package storetest holds every [headgate.Store] to one contract: [Run] is the suite that a store passes, [Bench] the benchmarks by which
// stores are compared.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) headgate.Store { return openMine(t) })
//	}
//
// The suite runs in real time against the store's own clock, and needs no control over it. It expects no speed: its limits are so slow
// that nothing comes back while a test runs, and where it waits, the store has said for how long, and its own clock decides whether
// that time has passed.
package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// Run runs the suite, each test on a store of its own from open. What open returns must be used by nobody else while the test runs, and may
// hold state of earlier tests: keys are new each time. open registers with t.Cleanup what is to be closed.
func Run(t *testing.T, open func(t *testing.T) headgate.Store) {
	tests := []struct {
		name string
		run  func(t *testing.T, store headgate.Store)
	}{
		{"Invalid", testInvalid},
		{"Decision", testDecision},
		{"DenialChargesNothing", testDenialChargesNothing},
		{"AllOrNothing", testAllOrNothing},
		{"Peek", testPeek},
		{"Capacity", testCapacity},
		{"ZeroLimit", testZeroLimit},
		{"Duplicates", testDuplicates},
		{"ManyCharges", testManyCharges},
		{"Refund", testRefund},
		{"RefundOfAnotherWindow", testRefundOfAnotherWindow},
		{"Reset", testReset},
		{"Keys", testKeys},
		{"LimitIdentity", testLimitIdentity},
		{"LimitChange", testLimitChange},
		{"CanceledContext", testCanceledContext},
		{"RetryAfter", testRetryAfter},
		{"ParallelTakes", testParallelTakes},
		{"ParallelCosts", testParallelCosts},
		{"ParallelRequestsOfSeveral", testParallelRequestsOfSeveral},
		{"ParallelRefunds", testParallelRefunds},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, open(t)) })
	}
}

// algorithms are all of them: most tests hold for each.
var algorithms = [...]headgate.Algorithm{
	headgate.TokenBucket, headgate.FixedWindow, headgate.AlignedWindow, headgate.SlidingWindow, headgate.SlidingLog,
}

// each runs a test for each algorithm, with a limit of count tokens in so long a time that none comes back during the test, and a key
// that was never seen.
func each(t *testing.T, store headgate.Store, count int64, run func(t *testing.T, s subject)) {
	for _, a := range algorithms {
		t.Run(a.String(), func(t *testing.T) {
			limit := headgate.Limit{Algorithm: a, Count: count, Period: headgate.MaxPeriod}
			run(t, subject{store, newKey(t), limit})
		})
	}
}

// newKey returns a key that no other test has used.
func newKey(t testing.TB) string { return fmt.Sprintf("%s/%016x", t.Name(), rand.Uint64()) }

// A subject is what a test asks: a store about one key and one limit.
type subject struct {
	store headgate.Store
	key   string
	limit headgate.Limit
}

func (s subject) charge(cost int64) headgate.Charge {
	return headgate.Charge{Key: s.key, Cost: cost, Limit: s.limit}
}

// under is s under another limit, and of another key.
func (s subject) under(l headgate.Limit) subject { return subject{s.store, s.key, l} }
func (s subject) of(key string) subject          { return subject{s.store, key, s.limit} }

func (s subject) take(t testing.TB, cost int64) headgate.Decision {
	t.Helper()
	return take(t, s.store, s.charge(cost))
}

func take(t testing.TB, store headgate.Store, charges ...headgate.Charge) headgate.Decision {
	t.Helper()
	d, err := store.Take(t.Context(), charges[0], charges[1:]...)
	if err != nil {
		t.Fatalf("Take: %v", err)
	}
	return d
}

func (s subject) refund(t testing.TB, ctx context.Context, n int64) {
	t.Helper()
	if err := s.store.Refund(ctx, s.charge(n)); err != nil {
		t.Fatalf("Refund: %v", err)
	}
}

// allowed takes cost tokens and fails unless they are granted and left remain.
func (s subject) allowed(t testing.TB, cost, left int64) headgate.Decision {
	t.Helper()
	d := s.take(t, cost)
	if !d.Allowed || d.Remaining != left || d.RetryAfter != 0 {
		t.Fatalf("%d of %v: %+v, want allowed with %d left", cost, s.limit, d, left)
	}
	return d
}

// denied asks for cost tokens and fails unless they are denied and left remain.
func (s subject) denied(t testing.TB, cost, left int64) headgate.Decision {
	t.Helper()
	d := s.take(t, cost)
	if d.Allowed || d.Remaining != left || d.RetryAfter <= 0 {
		t.Fatalf("%d of %v: %+v, want denied with %d left and a wait", cost, s.limit, d, left)
	}
	return d
}

// left fails unless a look finds left tokens.
func (s subject) left(t testing.TB, left int64) {
	t.Helper()
	s.allowed(t, 0, left)
}

// soon returns limits with so short a period that a test can wait for it.
func soon(a headgate.Algorithm) headgate.Limit {
	return headgate.Limit{Algorithm: a, Count: 3, Period: 150 * time.Millisecond}
}
