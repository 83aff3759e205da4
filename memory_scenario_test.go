package headgate_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/scenario"
)

func TestMemoryScenarios(t *testing.T) {
	scenario.Run(t, "testdata/scenarios", func(t *testing.T) (headgate.Store, func(time.Time)) {
		m, err := headgate.NewMemory(headgate.MemoryConfig{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		var now time.Time
		headgate.SetClock(m, func() time.Time { return now })
		return m, func(to time.Time) { now = to }
	})
}
