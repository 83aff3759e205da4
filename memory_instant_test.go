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

// TestInstantsOfOverlaps has one call come between the moment in which another reads the clock and its decision. Where either of the two changes
// something, the later one is not at an earlier instant: not even a grant after a denial, which took no lock, since it changed nothing.
func TestInstantsOfOverlaps(t *testing.T) {
	charge := func(key string, cost int64) Charge { return Charge{Key: key, Cost: cost, Limit: PerSecond(100)} }
	grant, denial, look := charge("ann", 1), charge("ann", 101), charge("ann", 0)
	m, err := NewMemory(MemoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	at := func(first Charge, more ...Charge) int64 {
		d, err := m.Take(context.Background(), first, more...)
		if err != nil {
			t.Error(err)
		}
		return d.At.UnixMicro()
	}
	now := int64(1_000)
	for step, s := range []struct {
		between Charge
		charges []Charge
	}{
		{denial, []Charge{grant}}, // of a key that is new
		{denial, []Charge{grant}},
		{look, []Charge{grant}},
		{denial, []Charge{charge("bob", 1), grant}},
		{look, []Charge{grant, charge("bob", 1)}},
		{grant, []Charge{grant}},
		{grant, []Charge{denial}},
		{grant, []Charge{look}},
		{grant, []Charge{charge("bob", 0), look}},
	} {
		before := now + 50
		m.now = func() int64 {
			now += 100
			m.now = func() int64 { return now }
			if got := at(s.between); got != now {
				t.Errorf("step %d: what came between was at %d, want %d", step, got, now)
			}
			return before
		}
		if got := at(s.charges[0], s.charges[1:]...); got != now {
			t.Errorf("step %d: at %d, want %d, as what came between", step, got, now)
		}
	}
}

// TestInstantsAcrossChanges has a look and then a refund or a reset come between the moment in which another look reads the clock and its decision:
// that is not at an earlier instant than the first look.
func TestInstantsAcrossChanges(t *testing.T) {
	ctx, limit := context.Background(), PerHour(1)
	grant, look := Charge{Key: "ann", Cost: 1, Limit: limit}, Charge{Key: "ann", Limit: limit}
	for name, change := range map[string]func(*Memory) error{
		"refund": func(m *Memory) error { return m.Refund(ctx, grant) },
		"reset":  func(m *Memory) error { return m.Reset(ctx, grant) },
	} {
		m, err := NewMemory(MemoryConfig{})
		if err != nil {
			t.Fatal(err)
		}
		at := func(c Charge) int64 {
			d, err := m.Take(ctx, c)
			if err != nil {
				t.Error(err)
			}
			return d.At.UnixMicro()
		}
		m.now = func() int64 { return 1_000 }
		at(grant)
		m.now = func() int64 {
			m.now = func() int64 { return 1_200 }
			if got := at(look); got != 1_200 {
				t.Errorf("%s: the first look is at %d", name, got)
			}
			if err := change(m); err != nil {
				t.Error(err)
			}
			return 1_100
		}
		if got := at(look); got != 1_200 {
			t.Errorf("%s: the look that comes after it is at %d, want 1200 as the one before", name, got)
		}
	}
}
