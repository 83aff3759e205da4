package gateway

import (
	"testing"
	"time"
)

// A second is a second, also across the edge of one, and after the clock has stepped back.
func TestLull(t *testing.T) {
	var l lull
	start := time.Unix(1_000_000, 950_000_000)
	for _, tt := range []struct {
		after time.Duration
		held  int64
		ok    bool
	}{
		{0, 0, true}, {100 * time.Millisecond, 0, false}, {time.Second - 1, 0, false}, {time.Second, 2, true},
		{-time.Hour, 0, true}, {-time.Hour + time.Millisecond, 0, false}, {-time.Hour + time.Second, 1, true},
	} {
		if held, ok := l.pass(start.Add(tt.after)); held != tt.held || ok != tt.ok {
			t.Errorf("after %v: %d, %v; want %d, %v", tt.after, held, ok, tt.held, tt.ok)
		}
	}
}
