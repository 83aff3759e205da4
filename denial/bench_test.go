package denial_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/denial"
)

// hammered returns a cache of n keys that stay denied.
func hammered(tb testing.TB, n int, named bool) (*denial.Store, []headgate.Charge) {
	s := around(tb, memory(tb), denial.Config{MaxStaleness: denial.LongestStaleness, MaxKeys: 16 * n})
	charges := make([]headgate.Charge, n)
	for i := range charges {
		charges[i] = charge(fmt.Sprintf("tenant:%08d", i), 1, headgate.Limit{Count: 1, Period: headgate.MaxPeriod})
		if named {
			charges[i].Limit.Name = "/partner tenant/day"
		}
		exhaust(tb, s, charges[i].Key, charges[i].Limit)
	}
	return s, charges
}

func TestAnswersDoNotAllocate(t *testing.T) {
	s, charges := hammered(t, 1, true)
	ctx := t.Context()
	if n := testing.AllocsPerRun(1000, func() { _, _ = s.Take(ctx, charges[0]) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if s.Saved() < 1000 {
		t.Errorf("%d saved: that was no answer of the cache", s.Saved())
	}
}

func BenchmarkAnswer(b *testing.B) {
	for _, named := range []bool{false, true} {
		for _, keys := range []int{1, 512} {
			b.Run(fmt.Sprintf("named=%v/keys=%d", named, keys), func(b *testing.B) {
				s, charges := hammered(b, keys, named)
				ctx, i := b.Context(), 0
				b.ReportAllocs()
				for b.Loop() {
					if d, _ := s.Take(ctx, charges[i]); d.Source != headgate.FromCache {
						b.Fatalf("%+v", d)
					}
					if i++; i == keys {
						i = 0
					}
				}
			})
		}
	}
	b.Run("parallel", func(b *testing.B) {
		s, charges := hammered(b, 1, true)
		ctx := b.Context()
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if d, _ := s.Take(ctx, charges[0]); d.Source != headgate.FromCache {
					b.Errorf("%+v", d)
					return
				}
			}
		})
	})
}

// BenchmarkPass is what a cache adds to a request that it cannot answer: the difference to the store alone.
func BenchmarkPass(b *testing.B) {
	c := charge("tenant:1", 1, headgate.Limit{Name: "/partner tenant/s", Count: headgate.MaxCount, Period: time.Second})
	m := memory(b)
	for name, store := range map[string]headgate.Store{"alone": m, "cache": around(b, m, denial.Config{})} {
		b.Run(name, func(b *testing.B) {
			ctx := b.Context()
			b.ReportAllocs()
			for b.Loop() {
				if d, _ := store.Take(ctx, c); !d.Allowed {
					b.Fatalf("%+v", d)
				}
			}
		})
	}
}
