package redisstore_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore/redistest"
)

// through makes a trial whose limiters meet the faults of a network. Its client trusts no connection that was idle for two seconds, as
// docs/redis.md advises.
func through(t *testing.T, timeout time.Duration, capacity int64) (*trial, *network) {
	t.Helper()
	server := redistest.Start(t)
	faulty := startNetwork(t, server.Addr())
	client := server.Client(func(o *redis.Options) { o.Addr, o.MaxRetries, o.ConnMaxIdleTime = faulty.addr(), 3, 2*time.Second })
	return newTrial(t, server, client, timeout, capacity), faulty
}

// TestChaosHalfOpen has the peer go without a word: what is sent is acknowledged, and nothing ever comes back, on any connection that
// there was. Many of them lie idle in the pool when the network is well again, and do not each cost a probe.
func TestChaosHalfOpen(t *testing.T) {
	t.Parallel()
	tr, faulty := through(t, time.Second, 400)
	tr.warm(t)
	tr.offer(t, 30, 10)
	tr.requireStore(t)
	tr.forget()
	faulty.silences.Add(1)
	tr.offer(t, 150, 1) // few at a time, so that the fault does not use up the pool
	tr.requireFallback(t, "deadline")
	faulty.silences.Add(1)
	tr.awaitStore(t)
	tr.requireBound(t, 1)
}

// TestChaosReset has every connection reset after three bytes of a reply: the request was executed, and its outcome is not known.
func TestChaosReset(t *testing.T) {
	t.Parallel()
	tr, faulty := through(t, 2*time.Second, 400)
	tr.offer(t, 30, 5)
	tr.requireStore(t)
	tr.forget()
	faulty.cutAfter.Store(3)
	tr.offer(t, 150, 5)
	tr.requireFallback(t, "EOF", "reset by peer", "broken pipe")
	faulty.cutAfter.Store(0)
	tr.awaitStore(t)
	tr.requireBound(t, 1)
}

// TestChaosLatency has each reply take 100 ms to 150 ms: that is slow, and no fault, where the timeout allows it. Where it does not, it is
// an outage, until the network is fast again.
func TestChaosLatency(t *testing.T) {
	t.Parallel()
	for name, timeout := range map[string]time.Duration{"patient": 20 * time.Second, "default": headgate.DefaultTimeout} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr, faulty := through(t, timeout, 200)
			tr.warm(t)
			faulty.slow(100*time.Millisecond, 50*time.Millisecond)
			tr.offer(t, 100, 20)
			if timeout > headgate.DefaultTimeout {
				tr.requireStore(t)
				tr.requireBound(t, 1)
				return
			}
			tr.requireFallback(t, "deadline")
			faulty.slow(0, 0)
			tr.awaitStore(t)
			tr.requireBound(t, 1)
		})
	}
}
