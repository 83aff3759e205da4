package headgate

import (
	"context"
	"fmt"
	"testing"
)

// TestInstantsOfAKeyAreInOrder has the clock be read by one call before another and used after it. No decision about a key is at an earlier instant
// than the one before: so it is where only one key was charged, and where several were.
func TestInstantsOfAKeyAreInOrder(t *testing.T) {
	for i := range 40 {
		m, err := NewMemory(MemoryConfig{})
		if err != nil {
			t.Fatal(err)
		}
		now := int64(0)
		m.now = func() int64 { return now }
		one := Charge{Key: fmt.Sprint("one", i), Cost: 1, Limit: PerSecond(100)}
		two := Charge{Key: fmt.Sprint("two", i), Cost: 1, Limit: PerSecond(100)}
		for step, s := range []struct {
			now, want int64
			charges   []Charge
		}{
			{100, 100, []Charge{one}},
			{90, 100, []Charge{one}},
			{80, 100, []Charge{two, one}}, // what one has seen, two has seen from now on
			{70, 100, []Charge{two}},
			{110, 110, []Charge{one, two}},
			{105, 110, []Charge{two}},
		} {
			now = s.now
			d, err := m.Take(context.Background(), s.charges[0], s.charges[1:]...)
			if err != nil || d.At.UnixMicro() != s.want {
				t.Errorf("step %d, keys of pair %d: at %d, %v; want %d", step, i, d.At.UnixMicro(), err, s.want)
			}
		}
	}
}
