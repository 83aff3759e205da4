package redisstore

import (
	"context"
	"strings"
	"time"

	"github.com/headgate/headgate"
)

// SetClock makes the script take the time from now instead of the server. The store must not be in use.
func (s *Store) SetClock(now func() time.Time) {
	const ask = "redis.call('TIME')"
	if strings.Count(decideSource, ask) != 1 {
		panic("decide.lua does not ask for the time just once")
	}
	s.clock = now
	s.decideScript = newScript(strings.Replace(decideSource, ask, "{ ARGV[#ARGV - 1], ARGV[#ARGV] }", 1))
}

// Sweep frees what is over now.
func (s *Store) Sweep(ctx context.Context) error { return s.sweep(ctx) }

// Prepare builds the request of a Take and returns what sends it, and says whether it was granted.
func (s *Store) Prepare(c headgate.Charge) func(ctx context.Context) (bool, error) {
	b := newBatch(s.layout)
	bill := newBill(s.layout, c, nil)
	b.add(verbTake, 0, bill.groups(true)[0].items())
	keys, args := b.keys(), b.args(modeDecide)
	return func(ctx context.Context) (bool, error) {
		v, err := s.decide(ctx, keys, args)
		if err != nil {
			return false, err
		}
		r, err := parseReply(v)
		return r.verdicts == "1", err
	}
}

// Generations returns the length of a generation of each class, the shortest first.
func Generations() []time.Duration {
	all := make([]time.Duration, len(classes))
	for i, c := range classes {
		all[i] = c.generation
	}
	return all
}

// ClassOf returns the index of the class of l.
func ClassOf(l headgate.Limit) int {
	return newBill(&layout{tags: []string{"0"}}, headgate.Charge{Key: "k", Limit: l}, nil).class()
}

// Hashes returns the two hashes of class that c's key belongs to, that of even generations first.
func (s *Store) Hashes(c headgate.Charge, class int) [2]string {
	of := s.layout.hashes[s.layout.shardOf(c.Key)]
	return [2]string{of[2*class], of[2*class+1]}
}

// LogKey returns the sorted set of c, whose limit is a sliding log.
func (s *Store) LogKey(c headgate.Charge) string {
	return s.layout.logKey(s.layout.shardOf(c.Key), field(c))
}

// ShardOf returns the shard of a limiter key.
func (s *Store) ShardOf(key string) int { return s.layout.shardOf(key) }

// Record returns the key that holds the number of shards.
func (s *Store) Record() string { return s.layout.record() }

// Field, ShardTags and Slot are what the layout computes.
func Field(c headgate.Charge) string { return field(c) }

// ShardTags returns the hash tags of n shards.
func ShardTags(n int) []string { return shardTags(n) }

// Slot returns the hash slot of a tag.
func Slot(tag string) uint16 { return slot(tag) }

// Crash ends the signs of life without leaving.
func (m *Membership) Crash() {
	m.cancel()
	<-m.done
}
