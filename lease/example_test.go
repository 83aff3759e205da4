package lease_test

import (
	"context"
	"fmt"
	"log"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/lease"
)

// A hundred requests of one process, and how many of them the shared store was asked about.
func Example() {
	shared, err := headgate.NewMemory(headgate.MemoryConfig{}) // in a fleet: a redisstore.Store behind a headgate.Guard
	if err != nil {
		log.Fatal(err)
	}
	leases, err := lease.New(shared, lease.Config{})
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := headgate.New(leases, []headgate.Limit{headgate.PerMinute(10_000)}, headgate.Config{})
	if err != nil {
		log.Fatal(err)
	}
	allowed := 0
	for range 100 {
		if d, err := limiter.Allow(context.Background(), "acme"); err == nil && d.Allowed {
			allowed++
		}
	}
	if err := leases.Close(context.Background()); err != nil {
		log.Fatal(err)
	}
	s := leases.Stats()
	fmt.Println(allowed, "allowed,", s.Saved() > 80, s.Held)
	// Output: 100 allowed, true 0
}
