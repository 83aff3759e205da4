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
	r := s.takeOf(c)
	b := newBatch(s.layout)
	b.add(r)
	return func(ctx context.Context) (bool, error) {
		v, err := s.decide(ctx, b, modeDecide)
		if err == nil {
			err = b.read(v)
		}
		return r.granted, err
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
	return newRule(l).class
}

// Hashes returns the two hashes of class that c's key belongs to, that of even generations first.
func (s *Store) Hashes(c headgate.Charge, class int) [2]string {
	of := s.layout.hashes[s.layout.shardOf(c.Key)]
	return [2]string{of[2*class].(string), of[2*class+1].(string)}
}

// LogKey returns the sorted set of c, whose limit is a sliding log.
func (s *Store) LogKey(c headgate.Charge) string {
	return s.layout.logKey(s.layout.shardOf(c.Key), newRule(c.Limit).field(c.Key))
}

// ShardOf returns the shard of a limiter key.
func (s *Store) ShardOf(key string) int { return s.layout.shardOf(key) }

// Record returns the key that holds the number of shards.
func (s *Store) Record() string { return s.layout.record() }

// Field, ShardTags and Slot are what the layout computes.
func Field(c headgate.Charge) string { return newRule(c.Limit).field(c.Key) }

// takeOf returns a request that takes c.
func (s *Store) takeOf(c headgate.Charge) *request {
	b := s.newBill(c, nil)
	return b.request.begin(verbTake, 0, b.items)
}

// ShardTags returns the hash tags of n shards.
func ShardTags(n int) []string { return shardTags(n) }

// Slot returns the hash slot of a tag.
func Slot(tag string) uint16 { return slot(tag) }

// Crash ends the signs of life without leaving.
func (m *Membership) Crash() {
	m.cancel()
	<-m.done
}

// ServerTime returns the seconds of CPU that a server has used, by its own account.
var ServerTime = serverTime

// OnTheirWay returns how many requests are queued or under way.
func (s *Store) OnTheirWay() int {
	n := 0
	for i := range s.lanes {
		l := &s.lanes[i]
		l.mu.Lock()
		n += len(l.queue) + l.sent
		l.mu.Unlock()
	}
	return n
}

// Command returns the command that takes c by itself, by the digest of the script.
func (s *Store) Command(c headgate.Charge) []any {
	b := newBatch(s.layout)
	b.add(s.takeOf(c))
	call := b.command(modeDecide)
	call[0], call[1] = "evalsha", s.decideScript.digest
	return call
}
