package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
)

// ErrLayout is, inside a [headgate.ErrStore], a store whose number of shards is not the one that is recorded under its prefix.
var ErrLayout = errors.New("redisstore: state lies in another number of shards")

// Store is a [headgate.Store] in Redis or Valkey: standalone, behind Sentinel, or a Cluster. It is safe for concurrent use; a process
// needs one.
type Store struct {
	conn         conn
	decideScript script
	layoutScript script
	clock        func() time.Time // nil but in tests
	layout       *layout
	rules        rules
	batches      batchPool
	lanes        []lane // see laneOf
	routes       routes
	bySlot       atomic.Bool  // a script may touch one hash slot alone
	checked      atomic.Int64 // 1 + the largest class for which the layout is on record; 0 = not checked yet

	background sync.WaitGroup
	sweeps     time.Duration
	mu         sync.Mutex // guards nextTend and closed
	nextTend   time.Time
	closed     bool
	ctx        context.Context // ends with Close
	cancel     context.CancelFunc
}

var _ headgate.Store = (*Store)(nil)

// New returns a Store on client, which it does not close. Redis need not be up: each decision tries anew. Errors match
// [headgate.ErrInvalidConfig].
//
// The client's time-outs apply besides the context's; its retries do not: a Take is sent once. Set ContextTimeoutEnabled in the client's
// options: otherwise each command costs a goroutine, so that the end of the context can be heeded all the same.
func New(client redis.UniversalClient, cfg Config) (*Store, error) {
	if client == nil {
		return nil, fmt.Errorf("%w: no client, want one such as redis.NewClient makes", headgate.ErrInvalidConfig)
	}
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	s := &Store{
		conn:         newConn(client),
		decideScript: newScript(decideSource),
		layoutScript: newScript(layoutSource),
		layout:       newLayout(cfg),
		sweeps:       cfg.SweepInterval,
	}
	s.lanes = make([]lane, len(s.layout.tags))
	for i := range s.lanes {
		s.lanes[i].store = s
	}
	s.nextTend = time.Now().Add(s.tendEvery())
	s.ctx, s.cancel = context.WithCancel(context.Background())
	_, standalone := client.(*redis.Client)
	s.bySlot.Store(!standalone)
	return s, nil
}

// Close ends what the store does in the background and waits for it. Afterwards every method fails with [headgate.ErrClosed]. It
// does not close the client. It always returns nil.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	for i := range s.lanes {
		s.lanes[i].close()
	}
	s.background.Wait()
	return nil
}

// Take implements [headgate.Store]: one round trip for charges that share a hash slot, and for any charges where there are no slots.
// On a Cluster, charges in different slots are taken slot by slot, and given back when a later slot denies.
func (s *Store) Take(ctx context.Context, first headgate.Charge, more ...headgate.Charge) (headgate.Decision, error) {
	b, err := s.bill("take", first, more)
	if err != nil {
		return headgate.Decision{}, err
	}
	at, err := s.take(ctx, b)
	if err != nil { // b may be on its way still
		return headgate.Decision{}, &headgate.StoreError{Op: "take", Err: err}
	}
	d := b.decision(time.UnixMicro(at), first, more)
	b.free()
	return d, nil
}

// Refund implements [headgate.Store].
func (s *Store) Refund(ctx context.Context, first headgate.Charge, more ...headgate.Charge) error {
	return s.change(ctx, "refund", verbRefund, first, more)
}

// Reset implements [headgate.Store].
func (s *Store) Reset(ctx context.Context, first headgate.Charge, more ...headgate.Charge) error {
	return s.change(ctx, "reset", verbReset, first, more)
}

func (s *Store) change(ctx context.Context, op string, verb byte, first headgate.Charge, more []headgate.Charge) error {
	b, err := s.bill(op, first, more)
	if err != nil {
		return err
	}
	takenAt := int64(0)
	if at, ok := headgate.TakenAt(ctx); ok {
		takenAt = at.UnixMicro()
	}
	if err := s.record(ctx, b); err != nil {
		return &headgate.StoreError{Op: op, Err: err}
	}
	var failed []error // one slot's failure does not keep the others from their change
	for _, r := range changes(b.groups(s.bySlot.Load()), verb, takenAt) {
		err := s.run(ctx, r)
		if errors.Is(err, errCrossSlot) {
			return s.change(ctx, op, verb, first, more)
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	if len(failed) > 0 {
		return &headgate.StoreError{Op: op, Err: errors.Join(failed...)}
	}
	return nil
}

// changes returns the requests that change the counters of groups. Where there are several, each was taken at an instant of its own, of which
// the last is known: a sliding log, which looks for just the entries of an instant, gives back its oldest ones instead.
func changes(groups []group, verb byte, takenAt int64) []*request {
	var requests []*request
	for _, g := range groups {
		if len(groups) == 1 || takenAt == 0 {
			requests = append(requests, &request{verb: verb, takenAt: takenAt, items: g})
			continue
		}
		var logs, others []item
		for _, it := range g {
			if it.rule.isLog() {
				logs = append(logs, it)
			} else {
				others = append(others, it)
			}
		}
		if len(others) > 0 {
			requests = append(requests, &request{verb: verb, takenAt: takenAt, items: others})
		}
		if len(logs) > 0 {
			requests = append(requests, &request{verb: verb, items: logs})
		}
	}
	return requests
}

func (s *Store) bill(op string, first headgate.Charge, more []headgate.Charge) (*bill, error) {
	if s.ctx.Err() != nil {
		return nil, &headgate.StoreError{Op: op, Err: headgate.ErrClosed}
	}
	if err := headgate.CheckCharges(first, more); err != nil {
		return nil, err
	}
	return s.newBill(first, more), nil
}

// take decides b and returns the instant.
func (s *Store) take(ctx context.Context, b *bill) (int64, error) {
	if err := s.record(ctx, b); err != nil {
		return 0, err
	}
	bySlot := s.bySlot.Load()
	if bySlot && len(b.items) > 1 {
		if groups := b.groups(true); len(groups) > 1 {
			return s.takeInOrder(ctx, groups)
		}
	}
	r := b.request.begin(verbTake, 0, b.items)
	err := s.run(ctx, r)
	if errors.Is(err, errCrossSlot) {
		return s.take(ctx, b)
	}
	if err != nil {
		return 0, err
	}
	return r.now, nil
}

// takeInOrder takes group after group. When one denies, those before it are given back, and those after it are asked what they would
// have said, so that the decision knows the longest wait.
func (s *Store) takeInOrder(ctx context.Context, groups []group) (int64, error) {
	taken := make([]int64, 0, len(groups)) // when each was
	for i, g := range groups {
		r := &request{verb: verbTake, items: g}
		err := s.run(ctx, r)
		if err == nil && r.granted {
			taken = append(taken, r.now)
			continue
		}
		if back := s.giveBack(ctx, groups[:i], taken); err != nil || back != nil {
			return 0, errors.Join(err, back)
		}
		for _, rest := range groups[i+1:] {
			r = &request{verb: verbCheck, items: rest}
			if err = s.run(ctx, r); err != nil {
				return 0, err
			}
		}
		return r.now, nil
	}
	return taken[len(taken)-1], nil
}

// giveBackTimeout bounds giving back, which the end of the caller's context does not stop.
const giveBackTimeout = time.Second

func (s *Store) giveBack(ctx context.Context, groups []group, taken []int64) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTimeout)
	defer cancel()
	var failed []error
	for i, g := range groups {
		if err := s.run(ctx, &request{verb: verbRefund, takenAt: taken[i], items: g}); err != nil { // each had room, and shows what it has again
			failed = append(failed, fmt.Errorf("give back: %w", err))
		}
	}
	return errors.Join(failed...)
}

// run has r decided in its lane, and its items filled in.
func (s *Store) run(ctx context.Context, r *request) error {
	if err := s.laneOf(ctx, r).do(ctx, r); err != nil {
		return err
	}
	if r.verb == verbReset {
		return nil
	}
	return r.fill()
}
