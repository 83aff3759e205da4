package storetest

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// Bench measures Take of a store: each algorithm, one hot key and 10,000 keys at random, by a lone caller and by many. Each benchmark has
// a store of its own from open. Most requests are granted, but for a sliding log, whose grants are bounded by its memory.
func Bench(b *testing.B, open func(b *testing.B) headgate.Store) {
	for _, a := range algorithms {
		b.Run(a.String(), func(b *testing.B) {
			limit := headgate.Limit{Algorithm: a, Count: 1_000_000_000, Period: time.Second}
			if a == headgate.SlidingLog {
				limit.Count = 1_000
			}
			hot, many := keys(1), keys(10_000)
			b.Run("hot", func(b *testing.B) { benchAlone(b, open(b), limit, hot) })
			b.Run("many", func(b *testing.B) { benchAlone(b, open(b), limit, many) })
			b.Run("hot-parallel", func(b *testing.B) { benchParallel(b, open(b), limit, hot) })
			b.Run("many-parallel", func(b *testing.B) { benchParallel(b, open(b), limit, many) })
		})
	}
}

func keys(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = "tenant:" + strconv.Itoa(i)
	}
	return list
}

// warm makes every key known, so that what is measured is the steady state.
func warm(b *testing.B, store headgate.Store, limit headgate.Limit, keys []string) {
	for _, key := range keys {
		if _, err := store.Take(b.Context(), headgate.Charge{Key: key, Cost: 1, Limit: limit}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
}

func benchAlone(b *testing.B, store headgate.Store, limit headgate.Limit, keys []string) {
	ctx := b.Context()
	warm(b, store, limit, keys)
	random := rand.New(rand.NewPCG(1, 2))
	for b.Loop() {
		if _, err := store.Take(ctx, headgate.Charge{Key: keys[random.IntN(len(keys))], Cost: 1, Limit: limit}); err != nil {
			b.Fatal(err)
		}
	}
}

func benchParallel(b *testing.B, store headgate.Store, limit headgate.Limit, keys []string) {
	ctx := b.Context()
	b.SetParallelism(64) // callers per processor: a store that is far away has many waiting
	warm(b, store, limit, keys)
	b.RunParallel(func(pb *testing.PB) {
		random := rand.New(rand.NewPCG(rand.Uint64(), 2))
		for pb.Next() {
			if _, err := store.Take(ctx, headgate.Charge{Key: keys[random.IntN(len(keys))], Cost: 1, Limit: limit}); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
