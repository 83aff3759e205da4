package redisstore

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// routes remembers which shards of a Cluster are on one node, so that their requests can travel together. What is out of date costs
// nothing but that: the client finds the right node for each command by itself.
type routes struct {
	lane  atomic.Pointer[[]int] // of each shard: the number of the first shard on its node
	until atomic.Int64          // when to look again, in nanoseconds since the Unix epoch
}

// routeInterval is how often the routes are looked up.
const routeInterval = time.Second

// laneOf returns the lane that r takes: one for all shards, or one for those of each node of a Cluster, or one for each.
func (s *Store) laneOf(ctx context.Context, r *request) *lane {
	if !s.bySlot.Load() {
		return &s.lanes[0]
	}
	shard := r.items[0].shard
	cluster, ok := s.conn.client.(*redis.ClusterClient)
	if !ok {
		return &s.lanes[shard]
	}
	lanes, now := s.routes.lane.Load(), time.Now().UnixNano()
	if until := s.routes.until.Load(); now >= until && s.routes.until.CompareAndSwap(until, now+int64(routeInterval)) {
		found := s.lookUp(ctx, cluster)
		lanes = &found
		s.routes.lane.Store(lanes)
	}
	if lanes == nil {
		return &s.lanes[shard]
	}
	return &s.lanes[(*lanes)[shard]]
}

// lookUp finds the routes out. A shard whose node is not known has a lane of its own.
func (s *Store) lookUp(ctx context.Context, cluster *redis.ClusterClient) []int {
	lanes := make([]int, len(s.layout.tags))
	first := map[*redis.Client]int{}
	for shard := range lanes {
		lanes[shard] = shard
		node, err := cluster.MasterForKey(ctx, s.layout.logKey(shard, ""))
		if err != nil {
			continue
		}
		if other, ok := first[node]; ok {
			lanes[shard] = other
		} else {
			first[node] = shard
		}
	}
	return lanes
}
