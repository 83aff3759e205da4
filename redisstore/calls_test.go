package redisstore

import (
	"cmp"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestFar: how many calls may be under way follows from how long one takes that has none before it; those that had to wait say nothing but
// that it is not longer.
func TestFar(t *testing.T) {
	type call struct {
		took  time.Duration
		leads bool
		times int
	}
	const near, far = callEvery / 2, 10 * callEvery
	for name, c := range map[string]struct {
		calls []call
		want  int
	}{
		"not known":                    {nil, 0},
		"near":                         {[]call{{near, true, 1}}, 0},
		"far":                          {[]call{{far, true, 1}}, 10},
		"very far":                     {[]call{{time.Minute, true, 1}}, mostCalls},
		"a first call that connects":   {[]call{{time.Second, true, 1}, {near, true, 1}}, 0},
		"the same, in a crowd":         {[]call{{time.Second, true, 1}, {far, false, 1}}, 10},
		"near and busy":                {[]call{{near, true, 1}, {time.Second, false, 1000}}, 0},
		"near, and one call is slow":   {[]call{{near, true, 1}, {far, true, 1}}, 1},
		"near, and then far":           {[]call{{near, true, 1}, {far, true, 200}}, 9}, // never quite
		"far, and then near, and busy": {[]call{{far, true, 1}, {near, false, 1}}, 0},
	} {
		l := lane{store: new(Store)}
		for _, call := range c.calls {
			for range call.times {
				l.learn(call.took, call.leads)
			}
		}
		if got := l.far(); got != c.want {
			t.Errorf("%s: %d calls, want %d", name, got, c.want)
		}
	}
}

// TestRoom: when one more call may set out, by what is under way already.
func TestRoom(t *testing.T) {
	for _, c := range []struct {
		far         int // calls that are on their way there and back
		calls, sent int
		want        bool
		most        int // for which there are connections; 0 = plenty
	}{
		{0, 0, 0, true, 0}, {0, 1, 500, true, 0}, {0, 2, 500, false, 0},
		{0, 2, 3, false, 0}, {0, 2, 2, true, 0}, {0, 7, 7, true, 0}, {0, 8, 8, false, 0},
		{12, 2, 3, true, 0}, {12, 11, 11 * fewRequests, true, 0}, {12, 12, 12, false, 0},
		{12, 2, 2*fewRequests + 1, false, 0}, {12, 1, 500, true, 0}, {4, 7, 7, true, 0},
		{12, 4, 4, true, 5}, {12, 5, 5, false, 5}, {0, 5, 5, false, 5}, {0, 1, 500, false, 1},
	} {
		l := lane{calls: c.calls, sent: c.sent, store: new(Store)}
		l.store.conn.calls = cmp.Or(c.most, 1000)
		l.quick.Store(int64(c.far) * int64(callEvery))
		if got := l.room(); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestCallsAndConnections: a store has no more calls under way than its client has connections, and leaves one to others where it can.
func TestCallsAndConnections(t *testing.T) {
	for _, c := range []struct{ pool, active, want int }{{64, 0, 63}, {20, 10, 9}, {4, 100, 3}, {3, 0, 2}, {2, 0, 2}, {1, 0, 1}} {
		single := redis.NewClient(&redis.Options{PoolSize: c.pool, MaxActiveConns: c.active})
		cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}, PoolSize: c.pool, MaxActiveConns: c.active})
		ring := redis.NewRing(&redis.RingOptions{PoolSize: c.pool, MaxActiveConns: c.active})
		for _, client := range []redis.UniversalClient{single, cluster, ring} {
			if _, got := settings(client); got != c.want {
				t.Errorf("%T, %d connections, %d at once: %d calls, want %d", client, c.pool, c.active, got, c.want)
			}
			if err := client.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
