package redisstore

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
)

// How many calls of the script a lane has under way at once: fewCalls, so that one is on its way while another is decided; up to
// singleCalls as long as they carry no more than one request each; and where the server is far away, as long as they carry fewRequests each
// or less on average, a further one for each callEvery that a call takes on its way, up to mostCalls. So light load waits for nothing, and
// under load what comes while the calls are under way makes up the next batch. There are never more than the client has connections for.
const (
	fewCalls    = 2
	singleCalls = 8
	mostCalls   = 16
	fewRequests = 16
	callEvery   = 60 * time.Microsecond // several times what the server works on a call of a few requests
)

// A lane takes requests to Redis in batches: what has queued while others were under way travels together, in order of arrival. There is no
// timer: a lone caller sends its request itself, at once.
type lane struct {
	store *Store
	mu    sync.Mutex
	queue []*request
	left  int // how many of the queue may be gone
	calls int // under way
	sent  int // requests under way
	shut  bool
	quick atomic.Int64 // how long a call takes that finds none before it, about: nanoseconds; 0 = not known
}

// A batchPool holds batches to be used again.
type batchPool struct{ pool sync.Pool }

func (p *batchPool) get(l *layout) *batch {
	if b, ok := p.pool.Get().(*batch); ok {
		return b
	}
	return newBatch(l)
}

func (p *batchPool) put(b *batch) {
	b.clear()
	p.pool.Put(b)
}

// do has r decided. After an error r must not be used again: it may be on its way still.
func (l *lane) do(ctx context.Context, r *request) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.done == nil {
		r.done = make(chan struct{}, 1)
	}
	r.deadline, _ = ctx.Deadline()
	l.mu.Lock()
	if l.shut {
		l.mu.Unlock()
		return headgate.ErrClosed
	}
	if l.calls == 0 && l.store.conn.inline(ctx) {
		l.calls, l.sent = 1, 1
		l.mu.Unlock()
		l.alone(ctx, r)
		return r.err
	}
	l.queue = append(l.queue, r)
	if l.room() {
		l.calls++
		l.store.background.Go(l.work)
	}
	l.mu.Unlock()
	return l.await(ctx, r)
}

// room says whether one more call may set out.
func (l *lane) room() bool {
	most := fewCalls
	switch {
	case l.sent <= l.calls:
		most = max(singleCalls, l.far())
	case l.sent <= fewRequests*l.calls:
		most = max(fewCalls, l.far())
	}
	return l.calls < min(most, l.store.conn.calls)
}

// far returns how many calls the way to the server and back holds. Where lanes share connections, they are under way between them anyway.
func (l *lane) far() int {
	if l.store.bySlot.Load() && !l.store.conn.cluster {
		return 0
	}
	return min(int(time.Duration(l.quick.Load())/callEvery), mostCalls)
}

// learn notes that a call has taken d, first if it found none before it. One that takes less than is known tells more than any that had to wait.
func (l *lane) learn(d time.Duration, first bool) {
	switch quick := time.Duration(l.quick.Load()); {
	case quick == 0 || d < quick:
		l.quick.Store(int64(d))
	case first:
		l.quick.Store(int64(quick + (d-quick)/16))
	}
}

// await waits for the outcome of r, or until ctx ends.
func (l *lane) await(ctx context.Context, r *request) error {
	if ctx.Done() == nil {
		<-r.done
		return r.err
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
	}
	if !r.status.CompareAndSwap(waiting, gone) {
		<-r.done
		return r.err
	}
	l.forget()
	return ctx.Err()
}

// forget sees to it that those who go away do not fill the queue of a lane that stands still.
func (l *lane) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left++; l.left < 64 || l.left < len(l.queue)/2 {
		return
	}
	l.left = 0
	l.queue = slices.DeleteFunc(l.queue, func(r *request) bool { return r.status.Load() == gone })
}

// alone sends r, which nobody was before, in the caller's own time, and leaves what has queued meanwhile to others.
func (l *lane) alone(ctx context.Context, r *request) {
	b := l.store.batches.get(l.store.layout)
	b.add(r)
	b.leads = true
	r.err = l.send(ctx, b)
	l.store.batches.put(b)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent--
	if len(l.queue) == 0 || l.shut {
		l.calls--
		l.refuse()
		return
	}
	l.store.background.Go(l.work)
}

// work sends batch after batch until nothing is queued.
func (l *lane) work() {
	for {
		runtime.Gosched() // those who have just been answered may ask again: let them
		parts := l.next()
		if parts == nil {
			return
		}
		l.run(parts)
	}
}

// next takes what travels next off the queue: a batch, or where a script may touch one hash slot alone one for each of some shards. With nothing
// to do it takes leave.
func (l *lane) next() []*batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shut {
		l.refuse()
	}
	var parts []*batch
	bySlot, n := l.store.bySlot.Load(), 0
	for n < len(l.queue) {
		if r := l.queue[n]; r.status.Load() != gone {
			b := part(parts, r, bySlot)
			if b == nil {
				b = l.store.batches.get(l.store.layout)
				b.leads = l.calls == 1
				parts = append(parts, b)
			}
			if !b.add(r) {
				break
			}
			l.sent++
		}
		n++
	}
	l.queue = slices.Delete(l.queue, 0, n)
	if parts == nil {
		l.calls--
	}
	return parts
}

// part returns the batch that r belongs to.
func part(parts []*batch, r *request, bySlot bool) *batch {
	for _, b := range parts {
		if !bySlot || b.requests[0].items[0].shard == r.items[0].shard {
			return b
		}
	}
	return nil
}

// run sends batches and tells everyone in them.
func (l *lane) run(parts []*batch) {
	ctx, cancel := context.Background(), context.CancelFunc(func() {})
	if deadline := latest(parts); !deadline.IsZero() {
		ctx, cancel = context.WithDeadline(ctx, deadline)
	}
	defer cancel()
	if len(parts) == 1 {
		l.tell(parts[0], l.send(ctx, parts[0]))
		return
	}
	calls := make([][]any, len(parts))
	for i, b := range parts {
		calls[i] = l.store.call(b, b.mode())
	}
	cmds, err := l.store.conn.sendAll(ctx, l.store.decideScript, calls)
	var again sync.WaitGroup
	for i, b := range parts {
		if err == nil && l.store.conn.unsent(cmds[i].Err()) {
			again.Go(func() { l.tell(b, l.send(ctx, b)) })
			continue
		}
		l.tell(b, l.outcome(ctx, b, cmds, i, err))
	}
	again.Wait()
	l.store.tendIfDue()
}

// outcome reads what came of part i of several.
func (l *lane) outcome(ctx context.Context, b *batch, cmds []once, i int, err error) error {
	if err != nil {
		return err
	}
	v, err := cmds[i].Result()
	if err != nil {
		return l.store.understand(b, overdue(ctx, err))
	}
	return b.read(v)
}

// tell tells everyone in a batch what came of it.
func (l *lane) tell(b *batch, err error) {
	l.mu.Lock()
	l.sent -= b.count
	l.mu.Unlock()
	for _, first := range b.requests {
		for r := first; r != nil; {
			next := r.next // whoever is told may use r again
			r.err = err
			if !r.deliver() && err == nil && r.verb == verbTake && r.granted && r.charges() {
				l.giveBack(r)
			}
			r = next
		}
	}
	l.store.batches.put(b)
}

func (l *lane) send(ctx context.Context, b *batch) error {
	start := time.Now()
	v, err := l.store.decide(ctx, b, b.mode())
	if err != nil {
		return err
	}
	l.learn(time.Since(start), b.leads)
	l.store.tendIfDue()
	return b.read(v)
}

// latest returns until when one of the requests waits; zero if one waits for ever.
func latest(parts []*batch) time.Time {
	var latest time.Time
	for _, b := range parts {
		for _, first := range b.requests {
			for r := first; r != nil; r = r.next {
				if r.deadline.IsZero() {
					return time.Time{}
				}
				if r.deadline.After(latest) {
					latest = r.deadline
				}
			}
		}
	}
	return latest
}

// giveBack returns what r was granted to the counters: who asked for it went away before it was told.
func (l *lane) giveBack(r *request) {
	back := &request{verb: verbGiveBack, takenAt: r.now, items: r.items, done: make(chan struct{}, 1), deadline: time.Now().Add(giveBackTimeout)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = append(l.queue, back) // its batch is the next of whoever calls this
}

// close refuses what is queued and what may come, and leaves alone what is under way.
func (l *lane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shut = true
	l.refuse()
}

// refuse ends what is queued when the store is closed.
func (l *lane) refuse() {
	if !l.shut {
		return
	}
	for _, r := range l.queue {
		r.err = headgate.ErrClosed
		r.deliver()
	}
	l.queue = nil
}

// deliver tells who asked. It returns false if nobody is there.
func (r *request) deliver() bool {
	if !r.status.CompareAndSwap(waiting, delivered) {
		return false
	}
	r.done <- struct{}{}
	return true
}
