package load

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// scanCount is how many keys Redis looks at in one step of a scan.
const scanCount = 1000

// Clean removes all keys that begin with prefix, and no other, from the database of client, or from all masters of a Cluster. Redis frees them in the
// background. The prefix must not be empty.
func Clean(ctx context.Context, client redis.UniversalClient, prefix string) error {
	if prefix == "" {
		return fmt.Errorf("load: no prefix, which would remove all keys")
	}
	if cluster, ok := client.(*redis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return cleanNode(ctx, node, prefix) })
	}
	return cleanNode(ctx, client, prefix)
}

func cleanNode(ctx context.Context, client redis.Cmdable, prefix string) error {
	pattern := escapeGlob(prefix) + "*"
	for cursor := uint64(0); ; {
		keys, next, err := client.Scan(ctx, cursor, pattern, scanCount).Result()
		if err != nil {
			return err
		}
		if err := unlink(ctx, client, prefix, keys); err != nil {
			return err
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// unlink removes those of keys that have the prefix, each by a command of its own, since on a Cluster they lie in different slots.
func unlink(ctx context.Context, client redis.Cmdable, prefix string, keys []string) error {
	pipe := client.Pipeline()
	for _, key := range keys {
		if strings.HasPrefix(key, prefix) {
			pipe.Unlink(ctx, key)
		}
	}
	if pipe.Len() == 0 {
		return nil
	}
	_, err := pipe.Exec(ctx)
	return err
}

// escapeGlob makes a pattern that matches s alone.
func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s)
}
