package redistest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// slotCount is the number of hash slots of every cluster.
const slotCount = 16384

// A Cluster is a Redis Cluster of masters without replicas, of one test.
type Cluster struct {
	tb    testing.TB
	nodes []*Server
	ids   map[*Server]string // node ids
}

// StartCluster starts a cluster of so many masters, at least one, with the hash slots spread evenly, and returns when all of them
// agree that it is up: after some two seconds, which Redis insists on. Each of config is a line of every node's redis.conf. A node
// that misses for two seconds counts as failed, and then the cluster is down: there is no replica to take over.
func StartCluster(tb testing.TB, masters int, config ...string) *Cluster {
	tb.Helper()
	if masters < 1 {
		tb.Fatalf("redistest: a cluster of %d masters, want at least 1", masters)
	}
	c := &Cluster{tb: tb, ids: make(map[*Server]string)}
	for range masters {
		c.nodes = append(c.nodes, newServer(tb))
	}
	if err := c.start(config); err != nil {
		tb.Fatalf("redistest: cluster: %v", err)
	}
	return c
}

func (c *Cluster) start(config []string) error {
	config = append(append(inMemory(),
		"cluster-enabled yes",
		"cluster-config-file nodes.conf",
		"cluster-node-timeout 2000",
		"cluster-announce-ip "+host,
	), config...)
	if err := together(c.nodes, func(s *Server) error { return s.launch(clusterPort, config) }); err != nil {
		return err
	}
	for i, s := range c.nodes {
		if err := c.introduce(i, s); err != nil {
			return fmt.Errorf("node %s: %w", s.Addr(), err)
		}
	}
	for i, s := range c.nodes {
		if err := c.join(i, s); err != nil {
			return fmt.Errorf("node %s: %w", s.Addr(), err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), startPatience)
	defer cancel()
	return together(c.nodes, func(s *Server) error {
		return poll(ctx, func() error { return c.agrees(ctx, s) })
	})
}

// together does the same to several servers at once, and returns what went wrong.
func together(servers []*Server, do func(*Server) error) error {
	errs := make([]error, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() { errs[i] = do(s) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// introduce gives node i an epoch of its own, which it accepts only while it knows no other node.
func (c *Cluster) introduce(i int, s *Server) error {
	ctx, admin := context.Background(), s.admin()
	defer func() { _ = admin.Close() }()
	id, err := admin.ClusterMyID(ctx).Result()
	if err != nil {
		return err
	}
	c.ids[s] = id
	return admin.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err()
}

// join gives node i its slots and makes it meet the nodes after it, so that nobody waits for gossip.
func (c *Cluster) join(i int, s *Server) error {
	ctx, admin := context.Background(), s.admin()
	defer func() { _ = admin.Close() }()
	first, end := slotCount*i/len(c.nodes), slotCount*(i+1)/len(c.nodes)
	if err := admin.ClusterAddSlotsRange(ctx, first, end-1).Err(); err != nil {
		return err
	}
	for _, other := range c.nodes[i+1:] {
		if err := admin.ClusterMeet(ctx, host, strconv.Itoa(other.port)).Err(); err != nil {
			return err
		}
	}
	return nil
}

// agrees returns nil when the node s knows all others and takes the cluster to be up.
func (c *Cluster) agrees(ctx context.Context, s *Server) error {
	admin := s.admin()
	defer func() { _ = admin.Close() }()
	info, err := admin.ClusterInfo(ctx).Result()
	if err != nil {
		return err
	}
	state, known, slots := infoField(info, "cluster_state"), infoField(info, "cluster_known_nodes"), infoField(info, "cluster_slots_ok")
	if state != "ok" || known != strconv.Itoa(len(c.nodes)) || slots != strconv.Itoa(slotCount) {
		return fmt.Errorf("node %s: state %s, knows %s of %d nodes, %s slots are well", s.Addr(), state, known, len(c.nodes), slots)
	}
	return nil
}

// AwaitUp waits until all nodes agree that the cluster is up, for use after a node was away.
func (c *Cluster) AwaitUp(tb testing.TB) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startPatience)
	defer cancel()
	for _, s := range c.nodes {
		if err := poll(ctx, func() error { return c.agrees(ctx, s) }); err != nil {
			tb.Fatalf("redistest: cluster: %v", err)
		}
	}
}

// Nodes returns the masters, in the order of the slots that they began with. The slice is the caller's.
func (c *Cluster) Nodes() []*Server { return append([]*Server(nil), c.nodes...) }

// Addrs returns the nodes' addresses, in the order of Nodes.
func (c *Cluster) Addrs() []string { return addrs(c.nodes) }

func addrs(servers []*Server) []string {
	all := make([]string, len(servers))
	for i, s := range servers {
		all[i] = s.Addr()
	}
	return all
}

// Client returns a new client of the cluster, closed when the test ends. It heeds the deadline of a context, and otherwise waits ten
// seconds; edit, when given, changes its options before it is made.
func (c *Cluster) Client(edit ...func(*redis.ClusterOptions)) *redis.ClusterClient {
	o := &redis.ClusterOptions{
		Addrs: c.Addrs(), DialTimeout: patience, ReadTimeout: patience, WriteTimeout: patience, ContextTimeoutEnabled: true,
	}
	for _, f := range edit {
		f(o)
	}
	client := redis.NewClusterClient(o)
	c.tb.Cleanup(func() { _ = client.Close() }) // a test may have closed it
	return client
}

// Slot returns the hash slot of a key, as the cluster computes it.
func (c *Cluster) Slot(key string) int {
	c.tb.Helper()
	slot, ok := c.nodes[0].Do("CLUSTER", "KEYSLOT", key).(int64)
	if !ok {
		c.tb.Fatalf("redistest: no slot for key %q", key)
	}
	return int(slot)
}

// SlotOwner returns the node that serves a hash slot, by the word of the first node that can answer.
func (c *Cluster) SlotOwner(slot int) *Server {
	c.tb.Helper()
	for _, s := range c.nodes {
		if !s.running() {
			continue
		}
		owner, err := c.ownerSeenBy(s, slot)
		if err != nil {
			c.tb.Fatalf("redistest: owner of slot %d: %v", slot, err)
		}
		return owner
	}
	c.tb.Fatalf("redistest: owner of slot %d: no node is running", slot)
	return nil
}

// ownerSeenBy returns the owner of a slot in the eyes of the node s.
func (c *Cluster) ownerSeenBy(s *Server, slot int) (*Server, error) {
	var owner *Server
	err := c.nodesSeenBy(s, func(node *Server, fields []string) {
		if slices.ContainsFunc(fields[min(8, len(fields)):], func(r string) bool { return holds(r, slot) }) {
			owner = node
		}
	})
	if err == nil && owner == nil {
		err = fmt.Errorf("%s knows of none", s.Addr())
	}
	return owner, err
}

// epochsSeenBy returns the configuration epochs of the nodes, by id, in the eyes of the node s.
func (c *Cluster) epochsSeenBy(s *Server) (map[string]string, error) {
	epochs := map[string]string{}
	err := c.nodesSeenBy(s, func(_ *Server, fields []string) { epochs[fields[0]] = fields[6] })
	return epochs, err
}

// nodesSeenBy calls see with each node of the cluster that the node s knows, and what it says of it: id, address, flags, the id of its master,
// two times, configuration epoch, state of the link, ranges of slots.
func (c *Cluster) nodesSeenBy(s *Server, see func(node *Server, fields []string)) error {
	admin := s.admin()
	defer func() { _ = admin.Close() }()
	table, err := admin.ClusterNodes(context.Background()).Result()
	if err != nil {
		return err
	}
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		for node, id := range c.ids {
			if len(fields) > 7 && id == fields[0] {
				see(node, fields)
			}
		}
	}
	return nil
}

// holds says whether a range of slots, such as 0-5460 or 7, holds slot. A slot on the move, in brackets, is no range.
func holds(r string, slot int) bool {
	first, last, several := strings.Cut(r, "-")
	if !several {
		last = first
	}
	from, err := strconv.Atoi(first)
	if err != nil {
		return false
	}
	to, err := strconv.Atoi(last)
	return err == nil && from <= slot && slot <= to
}
