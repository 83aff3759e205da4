package denial_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/denial"
)

func Example() {
	store, err := headgate.NewMemory(headgate.MemoryConfig{}) // in earnest a shared one, such as redisstore's
	if err != nil {
		log.Fatal(err)
	}
	guard, err := headgate.NewGuard(store, headgate.GuardConfig{})
	if err != nil {
		log.Fatal(err)
	}
	cache, err := denial.New(guard, denial.Config{MaxStaleness: time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := headgate.New(cache, []headgate.Limit{headgate.PerDay(2)}, headgate.Config{})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	allow := func() {
		d, err := limiter.Allow(ctx, "acme")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("allowed:", d.Allowed, "by:", d.Source)
	}
	for range 5 {
		allow()
	}
	if err := limiter.Refund(ctx, "acme", 1); err != nil {
		log.Fatal(err)
	}
	allow()
	fmt.Println("calls saved:", cache.Saved())
	// Output:
	// allowed: true by: store
	// allowed: true by: store
	// allowed: false by: store
	// allowed: false by: cache
	// allowed: false by: cache
	// allowed: true by: store
	// calls saved: 2
}
