package gateway

import (
	"sync/atomic"
	"time"
)

// A lull lets one line a second into the log, and counts those it holds back.
type lull struct {
	last atomic.Int64 // Unix nanoseconds of the last line
	held atomic.Int64
}

// pass says whether a line may be written at now, and how many were not since the last one. A clock that steps back does not silence it.
func (l *lull) pass(now time.Time) (held int64, ok bool) {
	at, last := now.UnixNano(), l.last.Load()
	if since := at - last; since >= 0 && since < int64(time.Second) || !l.last.CompareAndSwap(last, at) {
		l.held.Add(1)
		return 0, false
	}
	return l.held.Swap(0), true
}
