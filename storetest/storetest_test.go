package storetest_test

import (
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/storetest"
)

func open(tb testing.TB) headgate.Store {
	m, err := headgate.NewMemory(headgate.MemoryConfig{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = m.Close() })
	return m
}

func TestRun(t *testing.T) {
	storetest.Run(t, func(t *testing.T) headgate.Store { return open(t) })
}
