package headgate_test

import (
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// benchKeys returns n keys.
func benchKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = "tenant:" + strconv.Itoa(i)
	}
	return keys
}

// benchMemory measures Take of a Memory that knows all keys, by as many callers as there are processors.
func benchMemory(b *testing.B, limit headgate.Limit, keys []string) {
	m, err := headgate.NewMemory(headgate.MemoryConfig{MaxKeys: 2 * len(keys)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = m.Close() })
	for _, key := range keys {
		take(b, m, key, 1, limit)
	}
	ctx := b.Context()
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		random := rand.New(rand.NewPCG(rand.Uint64(), 1))
		for pb.Next() {
			if _, err := m.Take(ctx, headgate.Charge{Key: keys[random.IntN(len(keys))], Cost: 1, Limit: limit}); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// benchLimits are limits of each algorithm; a log is full most of the time, as its memory bounds what it grants.
func benchLimits() []headgate.Limit {
	var limits []headgate.Limit
	for a := headgate.TokenBucket; a <= headgate.SlidingLog; a++ {
		limits = append(limits, headgate.Limit{Algorithm: a, Count: 100, Period: time.Second})
	}
	return append(limits, headgate.Limit{Name: "plan", Count: 100, Period: time.Second})
}

// BenchmarkMemoryOneKey: all callers ask for one key.
func BenchmarkMemoryOneKey(b *testing.B) {
	keys := benchKeys(1)
	for _, limit := range benchLimits() {
		b.Run(limit.Name+limit.Algorithm.String(), func(b *testing.B) { benchMemory(b, limit, keys) })
	}
}

// BenchmarkMemoryMillionKeys: each call is for one of 1,000,000 keys at random.
func BenchmarkMemoryMillionKeys(b *testing.B) {
	keys := benchKeys(1_000_000)
	for _, limit := range benchLimits() {
		if limit.Algorithm != headgate.SlidingLog { // a list for each key: BenchmarkMemory has it with fewer keys
			b.Run(limit.Name+limit.Algorithm.String(), func(b *testing.B) { benchMemory(b, limit, keys) })
		}
	}
}

// BenchmarkMemoryTenMillionKeys fills a Memory with 10,000,000 keys, then asks for as many others, each of which evicts one. It takes
// about 1.5 GB and is not measured by time an operation: run it with -benchtime 1x. It reports what a key takes; the longest Take of
// either part, and for what the machine itself adds, the longest step of a loop that does nothing but read the clock for as long as the
// two together; and how long a garbage collection takes with the Memory and after it is gone.
func BenchmarkMemoryTenMillionKeys(b *testing.B) {
	const n = 10_000_000
	limit := headgate.PerDay(100)
	for b.Loop() {
		before := heap()
		m, err := headgate.NewMemory(headgate.MemoryConfig{MaxKeys: n})
		if err != nil {
			b.Fatal(err)
		}
		key := make([]byte, 0, 32)
		ask := func(i int) bool {
			key = strconv.AppendInt(append(key[:0], "tenant:"...), int64(i), 10)
			take(b, m, string(key), 1, limit)
			return i+1 < n
		}
		start := time.Now()
		reportLongest(b, "fill", ask)
		b.ReportMetric(float64(heap()-before)/float64(m.Len()), "B/key")
		b.ReportMetric(collection().Seconds()*1e3, "ms-GC-with")
		reportLongest(b, "evict", func(i int) bool { ask(n + i); return i+1 < n })
		if m.Len() > n || m.Evicted() < n/2 {
			b.Errorf("%d held, %d evicted", m.Len(), m.Evicted())
		}
		end := time.Now().Add(time.Since(start))
		_ = m.Close()
		runtime.KeepAlive(m)
		heap()
		b.ReportMetric(collection().Seconds()*1e3, "ms-GC-without")
		reportLongest(b, "idle", func(int) bool { return time.Now().Before(end) })
	}
}

// reportLongest does steps as long as they say so, and reports the longest of them and how many took more than a millisecond.
func reportLongest(b *testing.B, name string, step func(i int) (more bool)) {
	var longest time.Duration
	long := 0
	for i, more := 0, true; more; i++ {
		start := time.Now()
		more = step(i)
		elapsed := time.Since(start)
		longest = max(longest, elapsed)
		if elapsed > time.Millisecond {
			long++
		}
	}
	b.ReportMetric(longest.Seconds()*1e6, "us-longest-"+name)
	b.ReportMetric(float64(long), "over-1ms-"+name)
}

// heap returns the bytes in use after a garbage collection.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// collection returns how long a garbage collection takes.
func collection() time.Duration {
	start := time.Now()
	runtime.GC()
	return time.Since(start)
}
