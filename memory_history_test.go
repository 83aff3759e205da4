package headgate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/history"
)

// TestMemoryHistories plays random histories to a Memory and to a naive model. The seeds are fixed but for a few, which are new each time.
func TestMemoryHistories(t *testing.T) {
	const parts, each = 4, 4_000
	for part := range uint64(parts) {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			playHistories(t, part*each, each)
		})
	}
	t.Run("new", func(t *testing.T) {
		t.Parallel()
		seed := uint64(time.Now().UnixNano())
		t.Logf("begins at seed %d", seed)
		playHistories(t, seed, 100)
	})
}

// playHistories plays n histories to a Memory each, with so few places that keys meet in its shards.
func playHistories(t *testing.T, seed, n uint64) {
	for end := seed + n; seed < end; seed++ {
		m, err := headgate.NewMemory(headgate.MemoryConfig{MaxKeys: 256})
		if err != nil {
			t.Fatal(err)
		}
		var now time.Time
		headgate.SetClock(m, func() time.Time { return now })
		history.Run(t, seed, m, func(to time.Time) { now = to })
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
