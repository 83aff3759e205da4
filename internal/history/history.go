// Package history holds a store to the naive model of package oracle through random histories: takes of one and of many charges,
// refunds, resets, limits whose numbers change, and a clock that runs, leaps to the very edges and steps back.
//
// A history is its seed: the same seed makes the same history on every store.
package history

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/oracle"
)

// A player plays one history to a store and to the model.
type player struct {
	t      testing.TB
	seed   uint64
	random *rand.Rand
	store  headgate.Store
	setNow func(time.Time)
	model  *oracle.Model
	now    time.Time

	keys    []string
	limits  []headgate.Limit
	taken   []taken // grants that a refund may name
	granted ledger
	ahead   map[string]time.Time // counters last written after the clock stepped back, and the earliest that it has shown since
	last    headgate.Decision    // the latest decision
	steps   []step
}

// taken is a charge that was granted at an instant.
type taken struct {
	charge headgate.Charge
	at     time.Time
}

// A step is a line of the replay.
type step struct {
	at      time.Time
	text    string
	charges []headgate.Charge // none: it concerns every counter
}

// Run plays the history of seed to store, and fails t at the first difference from the model. setNow sets the clock of the store, which
// must not move otherwise. The keys begin with the seed, so that one store can play many histories, each of which begins at about the
// same instant; a store that cannot go back by years from one history to the next needs to be a fresh one.
//
// A counter whose time is over may or may not have been freed by the time that the clock steps back to when it mattered. One that was last
// written at an instant to which the clock has stepped back, and that nobody has asked for since, may be freed when its time has passed on
// the new clock, or last longer. All of that is right; so the history resets a counter before it comes to it.
func Run(t testing.TB, seed uint64, store headgate.Store, setNow func(time.Time)) {
	t.Helper()
	p := &player{
		t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 0x6865616467617465)),
		store: store, setNow: setNow, model: oracle.New(), granted: ledger{}, ahead: map[string]time.Time{},
	}
	p.choose()
	p.setTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(p.random.Int64N(int64(time.Hour))).Truncate(time.Microsecond)))
	for range 10 + p.random.IntN(30) {
		p.step()
	}
	p.granted.checkAll(p)
}

func (p *player) step() {
	switch n := p.random.IntN(100); {
	case n < 55:
		p.take()
	case n < 80:
		p.advance(p.leap())
	case n < 88:
		p.refund()
	case n < 90:
		p.reset()
	case n < 95:
		p.change()
	default:
		p.stepBack()
	}
}

// take asks for something and, at times, comes back a microsecond before the RetryAfter of a denial and at it.
func (p *player) take() {
	charges := p.charges()
	d := p.ask(charges)
	if d.Allowed || d.RetryAfter > 400*24*time.Hour || p.random.IntN(3) > 0 {
		return
	}
	if d.RetryAfter > time.Microsecond {
		p.advance(d.RetryAfter - time.Microsecond)
		if early := p.ask(charges); early.Allowed {
			p.fail("allowed a microsecond before its RetryAfter of %v", d.RetryAfter)
		}
		p.advance(time.Microsecond)
	} else {
		p.advance(d.RetryAfter)
	}
	if retry := p.ask(charges); !retry.Allowed {
		p.fail("denied after its RetryAfter of %v", d.RetryAfter)
	}
}

// ask has the charges decided by both and compares the decisions entirely.
func (p *player) ask(charges []headgate.Charge) headgate.Decision {
	p.note(charges, "take")
	got, err := p.store.Take(p.t.Context(), charges[0], charges[1:]...)
	if err != nil {
		p.fail("take: %v", err)
	}
	want := p.model.Take(p.now, got, charges...)
	got.At, want.At = got.At.UTC(), want.At.UTC()
	if !reflect.DeepEqual(got, want) {
		p.fail("decided\n  %+v\nwant\n  %+v", got, want)
	}
	if got.Allowed {
		for _, c := range charges {
			if c.Cost > 0 {
				p.taken = append(p.taken, taken{c, got.At})
				p.granted.add(c, p.now)
			}
		}
	}
	p.touched(charges)
	p.last = got
	return got
}

func (p *player) refund() {
	ctx, at := p.t.Context(), time.Time{}
	charges := p.charges()
	if n := len(p.taken); n > 0 && p.random.IntN(5) > 0 {
		grant := p.taken[p.random.IntN(n)]
		charges = []headgate.Charge{grant.charge}
		if p.random.IntN(2) == 0 {
			charges[0].Cost = 1 + p.random.Int64N(grant.charge.Cost)
		}
		if p.random.IntN(2) == 0 {
			at = grant.at
			ctx = headgate.WithTakenAt(ctx, at)
		}
	}
	text := "refund"
	if !at.IsZero() {
		text += " of " + at.Format("2006-01-02T15:04:05.000000")
	}
	p.note(charges, text)
	p.granted.forget(p, charges, false)
	if err := p.store.Refund(ctx, charges[0], charges[1:]...); err != nil {
		p.fail("refund: %v", err)
	}
	p.model.Refund(p.now, at, charges...)
	p.touched(charges)
}

func (p *player) reset() {
	p.forget(p.charges())
}

func (p *player) forget(charges []headgate.Charge) {
	p.note(charges, "reset")
	p.granted.forget(p, charges, true)
	if err := p.store.Reset(p.t.Context(), charges[0], charges[1:]...); err != nil {
		p.fail("reset: %v", err)
	}
	p.model.Reset(charges...)
	for _, c := range charges {
		delete(p.ahead, name(c))
	}
}

// change gives a limit that has a name other numbers. What was taken under the old ones is not named by refunds any more: which
// window of the new numbers holds it is nowhere said.
func (p *player) change() {
	i := p.random.IntN(len(p.limits))
	old := p.limits[i]
	if old.Name == "" {
		return
	}
	next := p.numbers(old.Algorithm)
	next.Name = old.Name
	if p.random.IntN(2) == 0 { // most often the period stays
		next.Period = old.Period
	}
	if next.Validate() != nil {
		return
	}
	p.limits[i] = next
	p.note(nil, fmt.Sprintf("change %s from %v to %v", old.Name, old, next))
	p.granted.forgetAll(p)
	p.taken = nil
}

func (p *player) advance(d time.Duration) {
	to := p.now.Add(d)
	for _, c := range p.all() {
		if back, ok := p.ahead[name(c)]; ok && p.model.OverSince(back, to, c) {
			p.forget([]headgate.Charge{c})
		}
	}
	p.setTime(to)
}

// stepBack turns the clock back. What was taken before is not named by refunds any more, since the clock may show its instant again.
func (p *player) stepBack() {
	for _, c := range p.all() {
		if p.model.Over(p.now, c) {
			p.forget([]headgate.Charge{c})
		}
	}
	p.granted.forgetAll(p)
	p.taken = nil
	steps := []time.Duration{
		time.Microsecond, time.Duration(1+p.random.Int64N(5_000_000)) * time.Microsecond,
		time.Duration(1+p.random.Int64N(2_000)) * time.Microsecond, time.Hour, 30 * 24 * time.Hour,
	}
	p.setTime(p.now.Add(-pick(p, steps)))
	for _, c := range p.all() {
		if back, ok := p.ahead[name(c)]; p.model.WrittenAfter(p.now, c) && (!ok || p.now.Before(back)) {
			p.ahead[name(c)] = p.now
		}
	}
}

// touched notes that the store has found the counters at the present time.
func (p *player) touched(charges []headgate.Charge) {
	for _, c := range charges {
		if c.Cost > 0 {
			delete(p.ahead, name(c))
		}
	}
}

func (p *player) setTime(now time.Time) {
	p.now = now
	p.setNow(now)
	p.note(nil, "clock")
}

// all returns a charge of every counter that this history can reach.
func (p *player) all() []headgate.Charge {
	var charges []headgate.Charge
	for _, key := range p.keys {
		for _, limit := range p.limits {
			charges = append(charges, headgate.Charge{Key: key, Limit: limit})
		}
	}
	return charges
}

func (p *player) note(charges []headgate.Charge, text string) {
	p.steps = append(p.steps, step{p.now, text, charges})
}

// fail ends the test with the steps that concern the counters of the last one.
func (p *player) fail(format string, args ...any) {
	concerned := map[string]bool{}
	for _, c := range p.steps[len(p.steps)-1].charges {
		concerned[name(c)] = true
	}
	replay := ""
	for _, s := range p.steps {
		line, show := s.at.Format("2006-01-02T15:04:05.000000 ")+s.text, len(s.charges) == 0
		for _, c := range s.charges {
			line += fmt.Sprintf(" [%.40q %d of %s %v]", c.Key, c.Cost, c.Limit.Name, c.Limit)
			show = show || concerned[name(c)]
		}
		if show {
			replay += line + "\n"
		}
	}
	p.t.Fatalf("history %d: %s\nthe steps that concern it:\n%s", p.seed, fmt.Sprintf(format, args...), replay)
}

// name names the counter of c.
func name(c headgate.Charge) string { return c.Key + "\n" + c.Limit.ID() }
