package table

import (
	"runtime"
	"sync/atomic"
)

// lock is held for some tens of nanoseconds, or for some microseconds where a segment grows: less than it takes to put a goroutine to
// sleep and wake it. So who waits looks again, and after a while lets other goroutines run in between, the holder among them. The zero
// lock is free.
type lock struct{ held atomic.Uint32 }

// spins is how often a waiter looks before it lets others run.
const spins = 64

func (l *lock) acquire() {
	if !l.held.CompareAndSwap(0, 1) {
		l.wait()
	}
}

func (l *lock) wait() {
	for i := 1; ; i++ {
		if l.held.Load() == 0 && l.held.CompareAndSwap(0, 1) {
			return
		}
		if i%spins == 0 {
			runtime.Gosched()
		}
	}
}

func (l *lock) release() { l.held.Store(0) }
