package lease_test

import (
	"context"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/lease"
)

// BenchmarkTake is a decision out of a lease: from one goroutine, and from all cores for one key and for many.
func BenchmarkTake(b *testing.B) {
	limit := headgate.Limit{Count: headgate.MaxCount, Period: time.Second}
	b.Run("one", func(b *testing.B) {
		s, c := newStore(b, newMemory(b), lease.Config{Lifetime: time.Minute}), headgate.Charge{Key: "k", Cost: 1, Limit: limit}
		b.Cleanup(func() { _ = s.Close(context.Background()) })
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Take(b.Context(), c); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(s.Stats().Blocks), "blocks")
	})
	for name, keys := range map[string]int{"parallel": 1, "keys": 1024} {
		b.Run(name, func(b *testing.B) {
			s := newStore(b, newMemory(b), lease.Config{Lifetime: time.Minute})
			b.Cleanup(func() { _ = s.Close(context.Background()) })
			names := make([]string, keys)
			for i := range names {
				names[i] = string(rune('a' + i))
			}
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					if _, err := s.Take(b.Context(), headgate.Charge{Key: names[i%keys], Cost: 1, Limit: limit}); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
