package denial_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/denial"
)

// TestEqualsTheStore feeds random histories to a store behind a cache and to one without: every decision is the same in every field but
// Source. The clocks stand still while a request is decided, and the bound on staleness is longer than a history, so nothing hides an error.
func TestEqualsTheStore(t *testing.T) {
	for _, a := range algorithms {
		t.Run(a.String(), func(t *testing.T) {
			t.Parallel()
			var saved, asked int64
			for seed := range uint64(400) {
				synctest.Test(t, func(t *testing.T) {
					h := newHistory(t, seed, a)
					for range 300 {
						h.step()
					}
					saved, asked = saved+h.cache.Saved(), asked+h.takes
				})
			}
			if saved < asked/20 || saved >= asked {
				t.Errorf("%d of %d decisions made by the cache: the histories try nothing", saved, asked)
			}
		})
	}
}

// A history is a random sequence of requests to two stores.
type history struct {
	t           *testing.T
	seed        uint64
	random      *rand.Rand
	behind      *headgate.Memory
	cache       *denial.Store
	bare        *headgate.Memory
	limits      []headgate.Limit
	keys        []string
	last        headgate.Decision
	takes       int64
	granted     []headgate.Charge
	grantedAt   []time.Time
	description string
}

func newHistory(t *testing.T, seed uint64, a headgate.Algorithm) *history {
	h := &history{t: t, seed: seed, random: rand.New(rand.NewPCG(seed, uint64(a))), behind: memory(t), bare: memory(t), keys: []string{"a", "b"}}
	h.cache = around(t, h.behind, denial.Config{MaxStaleness: denial.LongestStaleness, MaxKeys: 1 << h.random.IntN(6)})
	for _, name := range []string{"n", "", "m"}[:1+h.random.IntN(3)] {
		l := h.numbers(a)
		l.Name = name
		h.limits = append(h.limits, l)
	}
	return h
}

func (h *history) numbers(a headgate.Algorithm) headgate.Limit {
	l := headgate.Limit{Algorithm: a, Count: []int64{0, 1, 1, 2, 3, 7, 100}[h.random.IntN(7)]}
	l.Period = []time.Duration{time.Millisecond, 777 * time.Millisecond, time.Second, 7_777_777 * time.Microsecond, time.Minute}[h.random.IntN(5)]
	if a == headgate.TokenBucket {
		l.Burst = []int64{0, 0, 1, 2, 5}[h.random.IntN(5)]
	}
	return l
}

func (h *history) step() {
	switch n := h.random.IntN(100); {
	case n < 62:
		h.take(h.charges())
	case n < 88:
		time.Sleep(h.leap())
	case n < 92:
		h.refund()
	case n < 94:
		c := h.charges()
		h.both("reset", c, func(s headgate.Store) error { return s.Reset(h.t.Context(), c[0], c[1:]...) })
	case n < 98:
		if i := h.random.IntN(len(h.limits)); h.limits[i].Name != "" {
			next := h.numbers(h.limits[i].Algorithm)
			next.Name = h.limits[i].Name
			if next.Algorithm == headgate.SlidingLog { // see the package's comment: entries that were over under a shorter period
				next.Period = h.limits[i].Period
			}
			h.limits[i], h.granted, h.grantedAt = next, nil, nil
		}
	default:
		for range 5 { // those who hammer
			h.take([]headgate.Charge{{Key: h.keys[0], Cost: 1, Limit: h.limits[0]}})
		}
	}
}

// charges are one most often, and its cost is.
func (h *history) charges() []headgate.Charge {
	n := 1
	if h.random.IntN(8) == 0 {
		n = 2 + h.random.IntN(2)
	}
	list := make([]headgate.Charge, n)
	for i := range list {
		l := h.limits[h.random.IntN(len(h.limits))]
		costs := []int64{0, 1, 1, 1, 1, 1, 1, 1, l.Capacity(), l.Capacity() + 1, l.Capacity()/2 + 1, 2, math.MaxInt64}
		list[i] = charge(h.keys[h.random.IntN(len(h.keys))], costs[h.random.IntN(len(costs))], l)
	}
	return list
}

// leap is most often short, or ends about where the last decision's waits do.
func (h *history) leap() time.Duration {
	period := h.limits[h.random.IntN(len(h.limits))].Period
	leaps := []time.Duration{
		time.Microsecond, h.last.RetryAfter, h.last.RetryAfter - time.Microsecond, h.last.RetryAfter - h.last.RetryAfter/500, h.last.RetryAfter / 2,
		h.last.ResetAfter, h.last.ResetAfter - time.Microsecond, period, period / 10, time.Duration(h.random.Int64N(int64(period))),
	}
	leap := leaps[h.random.IntN(len(leaps))].Truncate(time.Microsecond)
	if leap < 0 || leap > time.Hour {
		return period
	}
	return leap
}

func (h *history) take(c []headgate.Charge) {
	h.description = fmt.Sprintf("seed %d: take of %+v", h.seed, c)
	got, want := take(h.t, h.cache, c[0], c[1:]...), take(h.t, h.bare, c[0], c[1:]...)
	h.last, h.takes = got, h.takes+1
	if got.Source == headgate.FromCache {
		got.Source = headgate.FromStore
	}
	if !reflect.DeepEqual(got, want) {
		h.t.Fatalf("%s:\n  %+v\nand without a cache\n  %+v", h.description, got, want)
	}
	if got.Allowed {
		for _, c := range c {
			h.granted, h.grantedAt = append(h.granted, c), append(h.grantedAt, got.At)
		}
	}
}

// refund gives back a grant, or something that was never taken, and says when it was taken or not.
func (h *history) refund() {
	c, ctx := h.charges(), h.t.Context()
	if n := len(h.granted); n > 0 && h.random.IntN(4) > 0 {
		i := n - 1 - h.random.IntN(min(n, 4))
		c = h.granted[i : i+1]
		if h.random.IntN(2) == 0 {
			ctx = headgate.WithTakenAt(ctx, h.grantedAt[i])
		}
	}
	h.both("refund", c, func(s headgate.Store) error { return s.Refund(ctx, c[0], c[1:]...) })
}

func (h *history) both(what string, c []headgate.Charge, call func(headgate.Store) error) {
	for _, s := range []headgate.Store{h.cache, h.bare} {
		if err := call(s); err != nil {
			h.t.Fatalf("seed %d: %s of %+v: %v", h.seed, what, c, err)
		}
	}
}
