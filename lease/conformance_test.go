package lease_test

import (
	"context"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/lease"
	"github.com/headgate/headgate/storetest"
)

func newMemory(t testing.TB) *headgate.Memory {
	t.Helper()
	m, err := headgate.NewMemory(headgate.MemoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func newStore(t testing.TB, inner headgate.Store, cfg lease.Config) *lease.Store {
	t.Helper()
	s, err := lease.New(inner, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A store that leases nothing is the store that it stands before.
func TestConformanceUnleased(t *testing.T) {
	storetest.Run(t, func(t *testing.T) headgate.Store {
		s := newStore(t, newMemory(t), lease.Config{Leases: func(headgate.Charge) bool { return false }})
		t.Cleanup(func() { _ = s.Close(context.Background()) })
		return s
	})
}

// With leases on, everything but the Source of some decisions is as the suite has it, as long as nothing is on its way back
// while it runs.
func TestConformanceLeased(t *testing.T) {
	storetest.Run(t, func(t *testing.T) headgate.Store {
		s := newStore(t, newMemory(t), lease.Config{Lifetime: lease.MaxLifetime})
		t.Cleanup(func() { _ = s.Close(context.Background()) })
		return s
	})
}
