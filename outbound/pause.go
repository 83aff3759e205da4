package outbound

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/headgate/headgate"
)

// A pause is a token bucket of its key in the store, of which a token is a microsecond: what is in use is what is left of the pause, and it
// drains as time passes. So the pause ends by the store's clock, needs no end to be written down, and a clock that steps back makes it no
// longer than it was. Whoever asks the store for tokens looks at the bucket in the same step: its ResetAfter is what is left.
//
// It has no Name, since its numbers never change, and the state of a limit without one is found in Redis at once: the look, which nearly
// always finds nothing, costs the server less than a second limit does.
var pauseLimit = headgate.Limit{Count: 1000, Period: time.Millisecond, Burst: LongestPause.Microseconds()}

// pauseLook is the charge that looks whether key is paused.
func pauseLook(key string) headgate.Charge { return headgate.Charge{Key: key, Limit: pauseLimit} }

// A pause that is asked for is charged as far as it is longer than what is in use. For the longest pause to win, that charge must fail when
// somebody else has charged since the bucket was looked at. So it is made together with one token of a second counter, of which there are
// as many as were used at the time of the look, and one more: all or nothing, the store decides. Whoever fails looks again; each
// failure is another's success. Nobody can shorten a pause, since nothing here gives back.
//
// The guard's window is long, since at its end its number begins anew: who looks before and charges after, together with another, makes the
// pause longer than was asked for, by no more than was asked for.
func guard(count int64) headgate.Limit {
	return headgate.Limit{Name: "outbound pause", Algorithm: headgate.FixedWindow, Count: count, Period: time.Hour}
}

const (
	shareTimeout = time.Second // for telling the store of a pause
	shareRounds  = 100
)

// errContended is a pause that others kept changing.
var errContended = errors.New("outbound: the pause was changed by others again and again")

// share tells the store of a pause that only this process knows of, in step with others of this process that do. If it cannot, the next
// request that gets an answer from the store tells it.
func (t *Transport) share(ctx context.Context, key string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shareTimeout)
	defer cancel()
	turn := t.sharing.Join(key)
	defer turn.Leave()
	select {
	case <-turn.Up():
	case <-ctx.Done():
		return
	}
	now, one := time.Now(), t.facts.of(key)
	if !one.end.After(now) || !one.end.After(one.shared) { // somebody told it for us
		return
	}
	if err := t.raise(ctx, key, one.end); err == nil {
		t.facts.change(key, time.Now(), func(f *fact) { f.shared = one.end })
	}
}

// raise makes the store's pause of key last until end or longer.
func (t *Transport) raise(ctx context.Context, key string, end time.Time) error {
	for range shareRounds {
		want := time.Until(end) // before the look: so the pause ends no earlier
		d, err := t.limiter.Take(ctx, pauseLook(key), headgate.Charge{Key: key, Limit: guard(headgate.MaxCount)})
		if err != nil {
			return err
		}
		if d.Source != headgate.FromStore || len(d.States) != 2 {
			return headgate.ErrStore
		}
		gap := want - d.States[0].ResetAfter
		if gap <= 0 {
			return nil
		}
		charge := pauseLook(key)
		charge.Cost = min(int64((gap+time.Microsecond-1)/time.Microsecond), pauseLimit.Burst)
		used := headgate.MaxCount - d.States[1].Remaining
		d, err = t.limiter.Take(ctx, charge, headgate.Charge{Key: key, Cost: 1, Limit: guard(min(used+1, headgate.MaxCount))})
		if err != nil {
			return err
		}
		if d.Source != headgate.FromStore {
			return headgate.ErrStore
		}
		if d.Allowed {
			return nil
		}
	}
	return errContended
}

// Pause stops all requests of key for d, in the whole fleet, as a response that asks for it does: for what is learnt in another way, such
// as from a body. A longer pause stays as it is; d is cut to MaxPause. Where the store cannot be told, it holds in this process, until the
// store can.
func (t *Transport) Pause(ctx context.Context, key string, d time.Duration) {
	if d <= 0 {
		return
	}
	t.facts.tell(key, time.Now(), min(d, t.cfg.MaxPause))
	t.share(ctx, key)
}

// Paused returns how long the pause of key still is, 0 if there is none. Errors match [headgate.ErrStore], then it is what is known here,
// and [headgate.ErrInvalidCharge].
func (t *Transport) Paused(ctx context.Context, key string) (time.Duration, error) {
	asked := time.Now()
	d, err := t.limiter.Take(ctx, pauseLook(key))
	if err != nil {
		return t.facts.left(key, asked), err
	}
	return t.settle(ctx, key, asked, d, d.ResetAfter), nil
}

// settle works out how long the pause of key still is, from what a decision found in the store and what is known here.
func (t *Transport) settle(ctx context.Context, key string, asked time.Time, d headgate.Decision, found time.Duration) time.Duration {
	now := time.Now()
	if d.Source != headgate.FromStore {
		return t.facts.left(key, now)
	}
	left, unshared := t.facts.settle(key, asked, now, found)
	if unshared {
		t.share(ctx, key)
		left = t.facts.left(key, time.Now())
	}
	return left
}

// learn takes note of what a response says, and returns it.
func (t *Transport) learn(ctx context.Context, key string, resp *http.Response) advice {
	if refuses(resp.StatusCode) {
		t.observe(ctx, Event{Kind: Refused, Status: resp.StatusCode})
	}
	a := t.cfg.Fields.read(resp.StatusCode, resp.Header, time.Now())
	a.pause = min(a.pause, t.cfg.MaxPause)
	if a.pause > 0 {
		t.observe(ctx, Event{Kind: Paused, Duration: a.pause, Status: resp.StatusCode, Field: a.field})
		t.Pause(ctx, key, a.pause)
	}
	return a
}
