package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
)

// A Node is a server that holds state, as it describes itself. What it does not say is empty or 0.
type Node struct {
	Addr      string // as the client calls it; behind Sentinel that is no address
	Version   string // such as "7.0.15"; of a Valkey its own, and not that of Redis which it imitates
	Mode      string // "standalone", "cluster" or "sentinel"
	MaxMemory int64  // bytes, 0 = no bound
	Policy    string // maxmemory-policy, such as "noeviction"
	Evicted   int64  // keys evicted since it was started
}

// Evicts says whether the node drops keys when its memory is full, and with them budgets that were spent. Under a volatile- policy it does
// as well: all keys of a store have a TTL.
func (n Node) Evicts() bool { return n.MaxMemory > 0 && n.Policy != "" && n.Policy != "noeviction" }

// A Server is what [Store.Server] found out.
type Server struct {
	// Nodes are the servers that hold state, in order of Addr: the masters of a Cluster, otherwise one.
	Nodes []Node
}

// Evicts says whether any of the nodes does.
func (s Server) Evicts() bool { return slices.ContainsFunc(s.Nodes, Node.Evicts) }

// Server asks the servers behind the client what they are: on a Cluster every master. Decisions never need it, so a user may lack the
// right to INFO, which it needs. It fails when any node does not answer; errors match [headgate.ErrStore].
func (s *Store) Server(ctx context.Context) (Server, error) {
	if s.ctx.Err() != nil {
		return Server{}, &headgate.StoreError{Op: "server", Err: headgate.ErrClosed}
	}
	type found struct {
		server Server
		err    error
	}
	done := make(chan found, 1)
	go func() { // a client that does not heed ctx gives up by its own time-outs, without us
		server, err := inspect(ctx, s.conn.client)
		done <- found{server, err}
	}()
	select {
	case f := <-done:
		if f.err != nil {
			return Server{}, &headgate.StoreError{Op: "server", Err: f.err}
		}
		return f.server, nil
	case <-ctx.Done():
		return Server{}, &headgate.StoreError{Op: "server", Err: ctx.Err()}
	}
}

// inspect asks every node of client that holds state.
func inspect(ctx context.Context, client redis.UniversalClient) (Server, error) {
	var mu sync.Mutex // the nodes of a Cluster are asked at once
	var server Server
	ask := func(ctx context.Context, c *redis.Client) error {
		info, err := c.Info(ctx).Result()
		if err != nil {
			return fmt.Errorf("%s: %w", c.Options().Addr, err)
		}
		n := parseInfo(info)
		n.Addr = c.Options().Addr
		mu.Lock()
		defer mu.Unlock()
		server.Nodes = append(server.Nodes, n)
		return nil
	}
	var err error
	switch c := client.(type) {
	case *redis.Client:
		err = ask(ctx, c)
	case *redis.ClusterClient:
		err = c.ForEachMaster(ctx, ask)
	case *redis.Ring:
		err = c.ForEachShard(ctx, ask)
	default:
		err = errors.New("a client of a kind that is not known")
	}
	slices.SortFunc(server.Nodes, func(a, b Node) int { return strings.Compare(a.Addr, b.Addr) })
	return server, err
}

// parseInfo reads the reply to INFO. What cannot be read is as if it were not there.
func parseInfo(info string) Node {
	says := make(map[string]string)
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			says[name] = value
		}
	}
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(says[name], 10, 64)
		return n
	}
	n := Node{
		Version: says["valkey_version"], Mode: says["server_mode"],
		MaxMemory: number("maxmemory"), Policy: says["maxmemory_policy"], Evicted: number("evicted_keys"),
	}
	if n.Version == "" {
		n.Version = says["redis_version"]
	}
	if n.Mode == "" {
		n.Mode = says["redis_mode"]
	}
	return n
}
