package inprocess

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/headgate/headgate/bench/internal/machine"
)

// A sizeSpec says what a worker measures: what keys take of memory, and the longest decisions.
type sizeSpec struct {
	Limiter string
	Quota   quota
	Keys    int
}

// A size is what came of it.
type size struct {
	PerKey    float64       // bytes of the machine's memory
	Heap      float64       // bytes of the heap
	GC        time.Duration // a collection that is asked for
	Decision  time.Duration // of a known key, at random
	Filling   time.Duration // the longest call, by the clock
	Full      longest       // for keys that are new, when there are all already
	Allocated bool          // whether PerKey is known
}

// A longest is the longest call by the clock, and by the CPU time of its thread, which the system's other work does not lengthen.
type longest struct{ Clock, CPU time.Duration }

// phases is how often keys that are new are asked for. A pause that belongs to the limiter is in each of them; what the system does to a thread,
// which its CPU time does not always leave out, is not.
const phases = 3

// add has one call timed. The calling goroutine is locked to its thread.
func (l *longest) add(call func()) {
	begun := time.Now()
	used, _ := machine.ThreadTime()
	call()
	end, _ := machine.ThreadTime()
	l.CPU = max(l.CPU, end-used)
	l.Clock = max(l.Clock, time.Since(begun))
}

// Size is the job of a worker.
func Size(ctx context.Context, text []byte, out io.Writer) error {
	var spec sizeSpec
	if err := json.Unmarshal(text, &spec); err != nil {
		return err
	}
	l, err := named(spec.Limiter)
	if err != nil {
		return err
	}
	s, err := spec.measure(ctx, l)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(s)
}

// measure fills the limiter with keys, looks at what that took, asks for some of them again, and then for new ones.
func (spec sizeSpec) measure(ctx context.Context, l limiter) (size, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	heap, resident := taken()
	ask, err := l.open(spec.Quota, spec.Keys)
	if err != nil {
		return size{}, err
	}
	var s size
	for i := 0; i < spec.Keys && ctx.Err() == nil; i++ {
		key := tenant(i)
		begun := time.Now()
		ask(key)
		s.Filling = max(s.Filling, time.Since(begun))
	}
	heapAfter, residentAfter := taken()
	s.Heap = float64(heapAfter-heap) / float64(spec.Keys)
	s.PerKey, s.Allocated = float64(residentAfter-resident)/float64(spec.Keys), resident > 0
	s.GC = collections()
	s.Decision = spec.again(ctx, ask)
	s.Full = spec.more(ctx, ask)
	runtime.KeepAlive(ask)
	return s, ctx.Err()
}

// more asks for new keys, a twentieth as many in each phase, and returns the longest call of the phase in which it was the shortest.
func (spec sizeSpec) more(ctx context.Context, ask decide) longest {
	least := longest{Clock: math.MaxInt64, CPU: math.MaxInt64}
	next := spec.Keys
	for range phases {
		var l longest
		for i := 0; i < spec.Keys/20 && ctx.Err() == nil; i++ {
			key := tenant(next)
			l.add(func() { ask(key) })
			next++
		}
		least.Clock, least.CPU = min(least.Clock, l.Clock), min(least.CPU, l.CPU)
	}
	return least
}

// again returns the time of a decision for keys at random. Making the key is part of it, as of all.
func (spec sizeSpec) again(ctx context.Context, ask decide) time.Duration {
	random := rand.New(rand.NewPCG(1, 0))
	calls := min(spec.Keys, 1_000_000)
	begun := time.Now()
	for i := 0; i < calls && ctx.Err() == nil; i++ {
		ask(tenant(random.IntN(spec.Keys)))
	}
	return time.Since(begun) / time.Duration(calls)
}

// tenant makes a key anew, as a request brings it.
func tenant(i int) string { return "tenant:" + strconv.Itoa(i) }

// taken returns what the heap holds, and what the process takes of the machine, when all garbage is gone.
func taken() (heap, resident int64) {
	debug.FreeOSMemory()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc), machine.Resident()
}

// collections returns the median of five collections.
func collections() time.Duration {
	var took []time.Duration
	for range 5 {
		begun := time.Now()
		runtime.GC()
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	return took[len(took)/2]
}
