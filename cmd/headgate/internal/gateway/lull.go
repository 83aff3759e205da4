package gateway

import (
	"sync/atomic"
	"time"
)

// A lull lets one line a second into the log, and counts those it holds back.
type lull struct {
	last atomic.Int64 // Unix seconds of the last line
	held atomic.Int64
}

// pass says whether a line may be written at now, and how many were not since the last one.
func (l *lull) pass(now time.Time) (held int64, ok bool) {
	second := now.Unix()
	if last := l.last.Load(); last == second || !l.last.CompareAndSwap(last, second) {
		l.held.Add(1)
		return 0, false
	}
	return l.held.Swap(0), true
}
