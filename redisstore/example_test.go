package redisstore_test

import (
	"context"
	"fmt"
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore"
)

// Every process that does this holds callers to the same 100 a second. While Redis is away, as it is here, each of four replicas lets
// through a quarter of that.
func Example() {
	addr := "127.0.0.1:1" // nobody listens there

	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	defer client.Close()
	store, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	limiter, err := headgate.New(store, []headgate.Limit{headgate.PerSecond(100)}, headgate.Config{
		OnStoreError: headgate.FailLocal,
		Replicas:     func() int { return 4 },
	})
	if err != nil {
		log.Fatal(err)
	}
	d, err := limiter.Allow(context.Background(), "acme")
	fmt.Println(d.Allowed, d.Remaining, d.Source, err)
	// Output: true 24 local <nil>
}
