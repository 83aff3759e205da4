package redistest

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/redis/go-redis/v9"
)

// migrateBatch is the most keys that one MIGRATE carries.
const migrateBatch = 100

// MoveSlot moves a hash slot with its keys from one node to another while both go on serving, by the protocol that redis-cli
// --cluster reshard follows, and returns when every node knows. from must own the slot.
func (c *Cluster) MoveSlot(tb testing.TB, slot int, from, to *Server) {
	tb.Helper()
	c.BeginMove(tb, slot, from, to).Finish(tb)
}

// A Move is the move of a hash slot that is under way: the keys that from still has are served there, and all others are redirected to
// the node they move to, with ASK, or TRYAGAIN for several keys that are not all there.
type Move struct {
	cluster  *Cluster
	slot     int
	from, to *Server
}

// BeginMove begins to move a hash slot, with no key moved yet.
func (c *Cluster) BeginMove(tb testing.TB, slot int, from, to *Server) *Move {
	tb.Helper()
	if from == to {
		tb.Fatalf("redistest: move slot %d from %s to itself", slot, from.Addr())
	}
	if _, err := to.do("CLUSTER", "SETSLOT", slot, "IMPORTING", c.ids[from]); err != nil {
		tb.Fatalf("redistest: import slot %d to %s: %v", slot, to.Addr(), err)
	}
	if _, err := from.do("CLUSTER", "SETSLOT", slot, "MIGRATING", c.ids[to]); err != nil {
		tb.Fatalf("redistest: migrate slot %d from %s: %v", slot, from.Addr(), err)
	}
	return &Move{cluster: c, slot: slot, from: from, to: to}
}

// MigrateKeys moves up to n of the keys that are left, and returns how many it found.
func (m *Move) MigrateKeys(tb testing.TB, n int) int {
	tb.Helper()
	admin := m.from.admin()
	defer func() { _ = admin.Close() }()
	found, err := m.migrate(admin, n)
	if err != nil {
		tb.Fatalf("redistest: move keys of slot %d: %v", m.slot, err)
	}
	return found
}

func (m *Move) migrate(admin *redis.Client, n int) (int, error) {
	ctx := context.Background()
	keys, err := admin.ClusterGetKeysInSlot(ctx, m.slot, n).Result()
	if err != nil || len(keys) == 0 {
		return 0, err
	}
	args := []any{"MIGRATE", host, m.to.port, "", 0, patience.Milliseconds(), "KEYS"}
	for _, k := range keys {
		args = append(args, k)
	}
	return len(keys), admin.Do(ctx, args...).Err()
}

// Finish moves all keys that are left and hands the slot over: every node knows when it returns.
func (m *Move) Finish(tb testing.TB) {
	tb.Helper()
	if err := m.finish(); err != nil {
		tb.Fatalf("redistest: move slot %d from %s to %s: %v", m.slot, m.from.Addr(), m.to.Addr(), err)
	}
}

func (m *Move) finish() error {
	admin := m.from.admin()
	defer func() { _ = admin.Close() }()
	for {
		n, err := m.migrate(admin, migrateBatch)
		if err != nil {
			return err
		}
		if n == 0 { // and none can come: the slot is migrating, so new keys are made at its new owner
			break
		}
	}
	for _, s := range m.listeners() {
		if _, err := s.do("CLUSTER", "SETSLOT", m.slot, "NODE", m.cluster.ids[m.to]); err != nil {
			return fmt.Errorf("tell %s: %w", s.Addr(), err)
		}
	}
	return m.settle()
}

// settle waits until all nodes that run know the epoch in which the new owner has the slot, and no other node has the same. One that did not would,
// if the slot moved on to it, take an epoch for itself that is no later, and the nodes would not agree on who has the slot.
func (m *Move) settle() error {
	ctx, cancel := context.WithTimeout(context.Background(), startPatience)
	defer cancel()
	owner := m.cluster.ids[m.to]
	var want map[string]string
	for _, s := range m.listeners() { // the new owner first
		err := poll(ctx, func() error {
			epochs, err := m.cluster.epochsSeenBy(s)
			if err != nil {
				return err
			}
			for id, epoch := range epochs {
				if id != owner && epoch == epochs[owner] {
					return fmt.Errorf("%s sees epoch %s twice", s.Addr(), epoch)
				}
			}
			if s == m.to {
				want = epochs
			}
			if !maps.Equal(epochs, want) {
				return fmt.Errorf("%s sees epochs %v, the new owner %v", s.Addr(), epochs, want)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// listeners returns the nodes that are to be told, in order: the new owner first, so that the slot is never without one.
func (m *Move) listeners() []*Server {
	order := []*Server{m.to, m.from}
	for _, s := range m.cluster.nodes {
		if s != m.to && s != m.from && s.running() {
			order = append(order, s)
		}
	}
	return order
}
