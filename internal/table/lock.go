package table

import (
	"runtime"
	"sync/atomic"
)

// lock is held for some tens of nanoseconds, which is less than it takes to put a goroutine to sleep and wake it, or, where a segment
// grows, for microseconds and more. So who waits looks again, and after a while lets other goroutines run in between, the holder among
// them. It does not sleep: under testing/synctest, where time passes when all do, that would move the clock. The zero lock is free.
//
// It is a version too: odd while the lock is held, and another one each time that it is given free. Who reads what the lock guards, and
// finds the version even before and the same after, has read what was there at one instant, and has written nothing. It never comes
// round: at one step a nanosecond that takes 500 years.
type lock struct{ version atomic.Uint64 }

// shut is the version of a lock that nobody gets any more. It is odd.
const shut = ^uint64(0)

const (
	restTurns = 1 << 11 // how many turns of an empty loop a waiter rests: half a microsecond or so
	rests     = 8       // how often it rests before it lets others run
)

// acquire waits for the lock; it returns false, without it, if the lock is shut.
func (l *lock) acquire() bool {
	v := l.version.Load()
	return v&1 == 0 && l.acquireAt(v) || l.wait()
}

// acquireAt takes the lock if its version is still v, which is even. Otherwise it rests.
func (l *lock) acquireAt(v uint64) bool {
	if l.version.CompareAndSwap(v, v+1) {
		return true
	}
	rest()
	return false
}

// wait is acquire for a lock that others want too.
func (l *lock) wait() bool {
	for i := 1; ; i++ {
		switch v := l.version.Load(); {
		case v == shut:
			return false
		case v&1 != 0:
			rest()
		case l.acquireAt(v):
			return true
		}
		if i%rests == 0 {
			runtime.Gosched()
		}
	}
}

// rest keeps away from the lock for a while in which others can have it several times. What it guards then stays in the cache of one
// processor for as long; to bring it from one to the other for each decision would take longer than the decision.
func rest() {
	for range restTurns {
	}
}

// release gives the lock free, which the caller holds.
func (l *lock) release() { l.version.Store(l.version.Load() + 1) }

// shut gives up the lock, which the caller holds, for good.
func (l *lock) shut() { l.version.Store(shut) }
