// Package redisstore is the shared [headgate.Store]: a fleet of processes holds callers to one budget through one Redis or Valkey.
//
//	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", ContextTimeoutEnabled: true})
//	store, err := redisstore.New(client, redisstore.Config{})
//	if err != nil { ... }
//	defer store.Close()
//	limiter, err := headgate.New(store, []headgate.Limit{headgate.PerSecond(100)}, headgate.Config{})
//
// It works with Redis from 6.2 and Valkey from 7.2, standalone, with Sentinel and as a Cluster, on any go-redis v9 client.
// One script reads, decides and writes in one step at one instant of the server's clock. docs/redis.md in the repository describes
// how state lies in Redis, and what a flush, a failover, an eviction or a clock step does to it.
package redisstore
