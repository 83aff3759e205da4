package cli

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/redisstore"
)

// How often the servers are asked whether they evict: until they first answer, and then.
const (
	evictionFirst = 5 * time.Second
	evictionEvery = time.Minute
)

// An eviction knows whether the servers behind the store drop keys when their memory is full. Those who spent their budget then start anew,
// which nothing else would show.
type eviction struct {
	store   *redisstore.Store
	log     *slog.Logger
	evicts  atomic.Bool
	evicted atomic.Int64 // keys, of all kinds, since the servers started
}

// run asks until ctx ends, and says so at the start and whenever the answer becomes yes.
func (e *eviction) run(ctx context.Context) {
	wait, refused := evictionFirst, false
	for {
		server, err := e.ask(ctx)
		switch {
		case err == nil:
			e.learn(server)
			wait = evictionEvery
		case !refused && strings.Contains(err.Error(), "NOPERM"):
			refused = true
			e.log.Info("cannot tell whether the store evicts keys: its user may not use INFO")
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

func (e *eviction) ask(ctx context.Context) (redisstore.Server, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	return e.store.Server(ctx)
}

func (e *eviction) learn(server redisstore.Server) {
	evicted := int64(0)
	for _, n := range server.Nodes {
		evicted += n.Evicted
		if n.Evicts() && !e.evicts.Load() {
			e.log.Warn("the store drops keys when its memory is full, and budgets that were spent with them: set maxmemory-policy to noeviction",
				slog.String("server", n.Addr), slog.String("maxmemory_policy", n.Policy), slog.Int64("maxmemory", n.MaxMemory))
		}
	}
	e.evicts.Store(server.Evicts())
	e.evicted.Store(evicted)
}
