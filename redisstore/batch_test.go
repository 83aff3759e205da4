package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore/redistest"
)

// An asked is one request of a random history.
type asked struct {
	verb    byte
	takenAt int64
	charges []headgate.Charge
}

// bill makes the bill and the request of a, for s.
func (a asked) bill(s *Store) *bill {
	b := s.newBill(a.charges[0], a.charges[1:])
	b.request.begin(a.verb, a.takenAt, b.items)
	return b
}

// randomAsked favours few keys and equal costs, so that many requests of a batch meet at a counter and many join.
func randomAsked(r *rand.Rand, limits []headgate.Limit, now time.Time) asked {
	a := asked{verb: verbTake}
	switch r.IntN(12) {
	case 0:
		a.verb = verbReset
	case 1, 2:
		a.verb = verbRefund
		if r.IntN(2) == 0 {
			a.takenAt = now.Add(-time.Duration(r.Int64N(int64(time.Second)))).UnixMicro()
		}
	}
	n := 1
	if r.IntN(3) == 0 {
		n = 1 + r.IntN(3)
	}
	for len(a.charges) < n {
		l := limits[r.IntN(len(limits))]
		c := headgate.Charge{Key: fmt.Sprint("k", r.IntN(3)), Limit: l, Cost: 1}
		switch r.IntN(6) {
		case 0:
			c.Cost = randomCost(r, l)
		case 1:
			c.Cost = int64(r.IntN(4))
		}
		a.charges = append(a.charges, c)
		if headgate.CheckCharges(a.charges[0], a.charges[1:]) != nil {
			a.charges = a.charges[:len(a.charges)-1]
		}
	}
	return a
}

// TestBatchEqualsOneByOne has random requests decided in batches, as lanes make them up, and one by one, at the same instants: every field
// of every decision is the same. So are the states that are left, since what follows rests on them.
func TestBatchEqualsOneByOne(t *testing.T) {
	client := redistest.Start(t).Client()
	joined, batches, total := 0, 0, 0
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 11))
		now := time.UnixMicro(1_790_000_000_000_000 + random.Int64N(1e12))
		var stores [2]*Store
		for i := range stores {
			store, err := New(client, Config{Prefix: fmt.Sprint("batch", i, ".", seed, ":"), Shards: 4, SweepInterval: -1})
			if err != nil {
				t.Fatal(err)
			}
			store.SetClock(func() time.Time { return now })
			stores[i] = store
		}
		limits := randomLimits(random)
		named := headgate.Limit{Name: "n", Algorithm: headgate.Algorithm(random.IntN(5)), Count: 5, Period: time.Second}
		limits = append(limits, named)
		named.Count, named.Period = 12, 3*time.Minute // another class
		limits = append(limits, named)
		for range 25 {
			now = now.Add(randomStep(random, limits[random.IntN(len(limits))]))
			var all []asked
			for range 1 + random.IntN(30) {
				all = append(all, randomAsked(random, limits, now))
			}
			got, sent, js := inBatches(t, stores[0], all)
			want := oneByOne(t, stores[1], all)
			batches, joined, total = batches+sent, joined+js, total+len(all)
			for i := range all {
				if !reflect.DeepEqual(got[i], want[i]) {
					t.Fatalf("seed %d, request %d of %d, %+v:\n got %+v\nwant %+v", seed, i, len(all), all[i], got[i], want[i])
				}
			}
		}
	}
	if batches*4 > total || joined < 500 {
		t.Errorf("%d batches of %d requests, of which %d joined another: too few to show anything", batches, total, joined)
	}
}

func inBatches(t *testing.T, s *Store, all []asked) (decisions []headgate.Decision, sent, joined int) {
	t.Helper()
	bills := make([]*bill, len(all))
	for i, a := range all {
		bills[i] = a.bill(s)
	}
	for from := 0; from < len(all); sent++ {
		b := newBatch(s.layout)
		to := from
		for to < len(all) && b.add(&bills[to].request) {
			to++
		}
		joined += to - from - len(b.requests)
		v, err := s.decide(context.Background(), b, b.mode())
		if err == nil {
			err = b.read(v)
		}
		if err != nil {
			t.Fatal(err)
		}
		from = to
	}
	for i, a := range all {
		decisions = append(decisions, outcome(t, bills[i], a))
	}
	return decisions, sent, joined
}

func oneByOne(t *testing.T, s *Store, all []asked) (decisions []headgate.Decision) {
	t.Helper()
	for _, a := range all {
		b := a.bill(s)
		if err := s.run(context.Background(), &b.request); err != nil {
			t.Fatal(err)
		}
		decisions = append(decisions, outcome(t, b, a))
	}
	return decisions
}

// outcome returns what the request of b found, for takes.
func outcome(t *testing.T, b *bill, a asked) headgate.Decision {
	t.Helper()
	if a.verb != verbTake {
		return headgate.Decision{}
	}
	if err := b.request.fill(); err != nil {
		t.Fatal(err)
	}
	return b.decision(time.UnixMicro(b.request.now), a.charges[0], a.charges[1:])
}

// TestBatchIsBounded fills batches with requests of the largest kind.
func TestBatchIsBounded(t *testing.T) {
	s, err := New(redistest.Start(t).Client(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]string{"small": "", "large": strings.Repeat("k", headgate.MaxKey-8)} {
		b := newBatch(s.layout)
		n := 0
		for {
			var charges []headgate.Charge
			for range headgate.MaxCharges {
				n++
				charges = append(charges, headgate.Charge{Key: fmt.Sprint(key, n), Limit: headgate.PerSecond(1), Cost: 1})
			}
			if !b.add(&asked{verb: verbTake, charges: charges}.bill(s).request) {
				break
			}
		}
		if b.entries > maxEntries || b.bytes > maxBytes+headgate.MaxCharges*(headgate.MaxKey+64) || len(b.requests) == 0 {
			t.Errorf("%s keys: %d items of %d bytes in a batch", name, b.entries, b.bytes)
		}
		if _, err := s.decide(context.Background(), b, modeDecide); err != nil {
			t.Errorf("%s keys: %v", name, err)
		}
	}
}

// TestCloseRefusesWhatIsQueued closes a store while takes wait behind calls that do not come back: each is told at once.
func TestCloseRefusesWhatIsQueued(t *testing.T) {
	s, err := New(redistest.Start(t).Client(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	l := &s.lanes[0]
	l.calls, l.sent = mostCalls, 2*mostCalls
	errs := make(chan error, 20)
	for range cap(errs) {
		go func() {
			_, err := s.Take(context.Background(), headgate.Charge{Key: "k", Cost: 1, Limit: headgate.PerSecond(1)})
			errs <- err
		}()
	}
	for s.OnTheirWay() < 2*mostCalls+cap(errs) {
		runtime.Gosched()
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for range cap(errs) {
		if err := <-errs; !errors.Is(err, headgate.ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
	}
}

// pipelines counts the pipelines that a client sends, and the commands in them.
type pipelines struct{ sent, commands int }

func (p *pipelines) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (p *pipelines) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (p *pipelines) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		p.sent++
		p.commands += len(cmds)
		return next(ctx, cmds)
	}
}

// TestShardsOfANodeTravelTogether has requests for several shards wait in one lane of a Cluster. They go out in one pipeline; where the node does not know
// the script they are sent again, once, and where a shard's keys are not what they should be its requests alone fail.
func TestShardsOfANodeTravelTogether(t *testing.T) {
	cluster := redistest.StartCluster(t, 1)
	client := cluster.Client()
	sent := new(pipelines)
	client.AddHook(sent)
	s, err := New(client, Config{Shards: 4})
	if err != nil {
		t.Fatal(err)
	}
	limit := headgate.Limit{Count: 100, Period: time.Hour}
	// ask has each of the keys 0 to 39 ask for one token, in one go, and returns what came of it by shard.
	ask := func() (granted, failed [4]int) {
		var bills []*bill
		l := &s.lanes[0]
		for i := range 40 {
			b := s.newBill(headgate.Charge{Key: fmt.Sprint(i), Cost: 1, Limit: limit}, nil)
			r := b.request.begin(verbTake, 0, b.items)
			r.done = make(chan struct{}, 1)
			bills, l.queue = append(bills, b), append(l.queue, r)
		}
		l.calls = 1
		l.work()
		for _, b := range bills {
			<-b.request.done
			switch shard := b.items[0].shard; {
			case b.request.err != nil:
				failed[shard]++
			case b.request.granted:
				granted[shard]++
			}
		}
		return granted, failed
	}
	for round := range 3 { // of the first the node does not know the script
		*sent = pipelines{}
		granted, failed := ask()
		if sum(granted) != 40 || failed != [4]int{} || slices.Contains(granted[:], 0) {
			t.Errorf("round %d: by shard %v granted and %v failed, want 40 granted in all four", round, granted, failed)
		}
		if *sent != (pipelines{sent: 1, commands: 4}) {
			t.Errorf("round %d: sent %+v, want one pipeline of four", round, *sent)
		}
	}
	for i := range 40 {
		d, err := s.Take(context.Background(), headgate.Charge{Key: fmt.Sprint(i), Limit: limit})
		if err != nil || d.Remaining != 97 {
			t.Errorf("key %d: %+v, %v; want 97 left after three rounds", i, d, err)
		}
	}
	for _, hash := range s.Hashes(headgate.Charge{Key: "0", Limit: limit}, ClassOf(limit)) {
		client.Del(context.Background(), hash)
		client.Set(context.Background(), hash, "foreign", time.Minute)
	}
	broken := s.layout.shardOf("0")
	granted, failed := ask()
	if granted[broken] != 0 || sum(granted) != 40-failed[broken] || sum(failed) != failed[broken] || failed[broken] == 0 {
		t.Errorf("by shard %v granted and %v failed, want all those of shard %d to fail and no others", granted, failed, broken)
	}
}

func sum(list [4]int) int { return list[0] + list[1] + list[2] + list[3] }

// TestWhoLeavesTheQueueIsNotSent has a caller go away while it is queued: it is in no batch.
func TestWhoLeavesTheQueueIsNotSent(t *testing.T) {
	s, err := New(redistest.Start(t).Client(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	l := &s.lanes[0]
	queued := func(key string) *request {
		r := s.takeOf(headgate.Charge{Key: key, Cost: 1, Limit: headgate.PerSecond(1)})
		l.queue = append(l.queue, r)
		return r
	}
	first, left, last := queued("a"), queued("b"), queued("c")
	left.status.Store(gone)
	l.calls = 1
	parts := l.next()
	if len(parts) != 1 || !slices.Equal(parts[0].requests, []*request{first, last}) || len(l.queue) != 0 || l.sent != 2 {
		t.Errorf("sends %v and counts %d, want the first and the last of %v", parts, l.sent, []*request{first, left, last})
	}
}

// TestLatest says until when batches are waited for: as long as anyone in them waits.
func TestLatest(t *testing.T) {
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0) }
	joined := &request{deadline: at(30)}
	parts := []*batch{
		{requests: []*request{{deadline: at(10), next: joined}, {deadline: at(20)}}},
		{requests: []*request{{deadline: at(5)}}},
	}
	if got := latest(parts); !got.Equal(at(30)) {
		t.Errorf("got %v, want that of the one who joined and waits longest", got)
	}
	parts[1].requests[0].deadline = time.Time{}
	if got := latest(parts); !got.IsZero() {
		t.Errorf("got %v although one waits for ever", got)
	}
}

// TestBatchKeepsNothing uses a batch again: it is as if new.
func TestBatchKeepsNothing(t *testing.T) {
	s, err := New(redistest.Start(t).Client(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 1))
	limits := randomLimits(random)
	used := newBatch(s.layout)
	for range 200 {
		fresh := newBatch(s.layout)
		for range random.IntN(20) {
			a := randomAsked(random, limits, time.UnixMicro(1e15))
			if used.add(&a.bill(s).request) != fresh.add(&a.bill(s).request) {
				t.Fatal("a batch that was used before has room for something else")
			}
		}
		got, want := flat(used.command(used.mode())), flat(fresh.command(fresh.mode()))
		if got != want {
			t.Fatalf("a batch that was used before asks\n%q, want\n%q", got, want)
		}
		used.clear()
	}
}

// flat writes out a command.
func flat(call []any) string {
	var text strings.Builder
	for _, arg := range call {
		fmt.Fprintf(&text, "%q ", arg)
	}
	return text.String()
}
