package outbound

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/line"
)

// An answer is what the store and this process say to one request.
type answer struct {
	decision headgate.Decision // without the look at the pause
	retry    time.Duration     // until there is room
	pause    time.Duration     // until the pause is over
}

// granted says whether the request may be sent, and was charged.
func (a answer) granted() bool { return a.retry == 0 && a.pause == 0 }

// ask makes one decision. Whoever is paused is charged nothing: a process that knows of the pause only looks, and what the first to
// find it was granted is given back.
func (t *Transport) ask(ctx context.Context, b *bill) (answer, error) {
	asked := time.Now()
	if known := t.facts.left(b.key, asked); known > 0 {
		if pause := t.look(ctx, b.key, known); pause > 0 {
			return pausedAnswer(pause), ctx.Err()
		}
		asked = time.Now()
	}
	d, err := t.limiter.TakeOrGiveBack(ctx, b.charges[0], b.charges[1:]...)
	if err != nil {
		return answer{decision: d}, err
	}
	own, found := split(d)
	a := answer{decision: own, pause: t.settle(ctx, b.key, asked, d, found)}
	switch {
	case !d.Allowed:
		a.retry = max(d.RetryAfter, 1)
	case a.pause > 0:
		t.giveBack(ctx, b, d)
		a = pausedAnswer(a.pause)
		a.decision.Source, a.decision.At = d.Source, d.At
	}
	return a, nil
}

// look returns how long a pause that is known here still is.
func (t *Transport) look(ctx context.Context, key string, known time.Duration) time.Duration {
	pause, err := t.Paused(ctx, key)
	if err != nil && !errors.Is(err, headgate.ErrInvalidCharge) {
		return known
	}
	return pause
}

func pausedAnswer(pause time.Duration) answer {
	return answer{pause: pause, decision: headgate.Decision{Limit: pauseLimit, RetryAfter: pause, ResetAfter: pause}}
}

// split takes the look at the pause, the last of the charges, out of a decision.
func split(d headgate.Decision) (own headgate.Decision, pause time.Duration) {
	n := len(d.States)
	if n == 0 { // the look was all, or nobody decided
		return d, d.ResetAfter
	}
	pause = d.States[n-1].ResetAfter
	own = headgate.Decide(d.At, d.States[:n-1])
	own.Source = d.Source
	return own, pause
}

// giveBack returns what a request that does not leave was charged. An error is nobody's concern: what is not given back is spent, and no
// limit is exceeded by it.
func (t *Transport) giveBack(ctx context.Context, b *bill, d headgate.Decision) {
	if b.spends {
		_ = t.limiter.GiveBack(context.WithoutCancel(ctx), d, b.charges[0], b.charges[1:]...)
	}
}

// A waiter is a request on its way to being allowed.
type waiter struct {
	*Transport
	ctx     context.Context
	bill    *bill
	turn    *line.Turn
	came    time.Time
	end     time.Time // when it must be allowed
	waiting bool
}

// admit returns when the request may be sent, with the decision that charged it, or with an error. end is when it must be allowed.
func (t *Transport) admit(ctx context.Context, b *bill, end time.Time) (headgate.Decision, error) {
	t.observe(ctx, Event{Kind: Asked})
	w := &waiter{Transport: t, ctx: ctx, bill: b, came: time.Now(), end: end}
	d, err := w.admit()
	if w.waiting {
		t.counts.waitingNow.Add(-1)
	}
	var limited *LimitedError
	if errors.As(err, &limited) {
		t.observe(ctx, Event{Kind: Limited, Duration: limited.RetryAfter})
	} else if err == nil {
		t.observe(ctx, Event{Kind: Allowed, Duration: time.Since(w.came)})
	}
	return d, err
}

func (w *waiter) admit() (headgate.Decision, error) {
	if err := w.ctx.Err(); err != nil {
		return headgate.Decision{}, err
	}
	if w.cfg.MaxWait == 0 {
		a, err := w.ask(w.ctx, w.bill)
		if err == nil && !a.granted() {
			err = a.limited()
		}
		return a.decision, err
	}
	w.turn = w.lines.Join(w.bill.key)
	defer w.turn.Leave()
	if err := w.queue(); err != nil {
		return headgate.Decision{}, err
	}
	return w.head()
}

// limited is the error of a request that may not wait as long as a says.
func (a answer) limited() error {
	return &LimitedError{RetryAfter: max(a.retry, a.pause), Paused: a.pause >= a.retry, Decision: a.decision}
}

// queue returns when it is the waiter's turn. Where those before it must wait longer than it may, or are too many for the limits to let all of
// them through in time, it fails at once: so a line is never longer than what can be served.
func (w *waiter) queue() error {
	select {
	case <-w.turn.Up():
		return nil
	default:
	}
	now, one := time.Now(), w.facts.of(w.bill.key)
	if one.ready.After(w.end) {
		return w.outrun(now)
	}
	if wait, limit := w.bill.wait(w.turn.Place()); wait > w.end.Sub(now) {
		return &LimitedError{RetryAfter: wait, Decision: headgate.Decision{Limit: limit, RetryAfter: wait}}
	}
	w.begin(max(0, one.ready.Sub(now)))
	timer := time.NewTimer(w.end.Sub(now))
	defer timer.Stop()
	select {
	case <-w.turn.Up():
		return nil
	case <-w.ctx.Done():
		return w.ctx.Err()
	case <-timer.C:
		return w.outrun(time.Now())
	}
}

// outrun is the error of one whose time is over while others are before it.
func (w *waiter) outrun(now time.Time) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	one := w.facts.of(w.bill.key)
	wait := max(one.ready.Sub(now), one.end.Sub(now), time.Millisecond)
	return &LimitedError{RetryAfter: wait, Paused: one.end.After(now)}
}

// head asks again and again until the request is granted. It is the waiter's turn.
func (w *waiter) head() (headgate.Decision, error) {
	var placed time.Time // the end of the pause after which the waiter has found its place
	for {
		now := time.Now()
		if end := w.facts.of(w.bill.key).end; end.After(w.came) && !end.After(now) && !end.Equal(placed) { // it came before that
			placed = end
			if err := w.sleep(w.place(end, now)); err != nil {
				return headgate.Decision{}, err
			}
		}
		a, err := w.ask(w.ctx, w.bill)
		if err != nil || a.granted() {
			return a.decision, err
		}
		now = time.Now()
		wait := max(a.retry, a.pause)
		if wait > w.end.Sub(now) {
			return a.decision, a.limited()
		}
		if err := w.sleep(now.Add(wait)); err != nil {
			return a.decision, err
		}
	}
}

// place returns when the head of the line goes after a pause. All who wait are spread over the time of Jitter from its end, evenly and at
// random, in the order in which they came: of n points in what is left of that time, this is the first. It is worked out when the pause is
// over, since only then is it known how many wait.
func (w *waiter) place(end, now time.Time) time.Time {
	last := end.Add(w.cfg.Jitter)
	if last.After(w.end) {
		last = w.end
	}
	from := end
	if now.After(from) {
		from = now
	}
	window := last.Sub(from)
	if window <= 0 {
		return from
	}
	first := 1 - math.Pow(1-rand.Float64(), 1/float64(w.turn.Line()))
	return from.Add(time.Duration(first * float64(window)))
}

// sleep waits until wake, and lets those in the line know.
func (w *waiter) sleep(wake time.Time) error {
	now := time.Now()
	d := wake.Sub(now)
	if d <= 0 {
		return nil
	}
	w.begin(d)
	w.facts.change(w.bill.key, now, func(f *fact) { f.ready = wake })
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-w.ctx.Done():
		w.facts.change(w.bill.key, now, func(f *fact) { f.ready = time.Time{} })
		return w.ctx.Err()
	}
}

// begin notes that the waiter waits, for about d.
func (w *waiter) begin(d time.Duration) {
	if w.waiting {
		return
	}
	w.waiting = true
	w.counts.waitingNow.Add(1)
	w.observe(w.ctx, Event{Kind: Waiting, Duration: d})
}
