package denial

import (
	"strings"
	"time"

	"github.com/headgate/headgate"
)

// An entry is a denial that left no token to anybody. It does not change. Instants are those of the local clock.
type entry struct {
	hash   uint64
	key    string
	limit  headgate.Limit
	at     time.Time     // of the decision, by the store's clock
	retry  time.Duration // from at on
	reset  time.Duration // from at on
	sent   time.Duration // when the store had not yet been asked: at is no earlier
	usable time.Duration // from sent on
}

// clockSlack divides a wait into the part of it that is left to the store, as clocks may differ by it: NTP slews one by up to a 2000th.
const clockSlack = 500

// remember makes an entry of what the store said of c, or returns nil where that tells nothing about the requests to come.
func remember(hash uint64, c *headgate.Charge, d *headgate.Decision, sent, maxStaleness time.Duration) *entry {
	if d.Allowed || d.Source != headgate.FromStore || d.Remaining != 0 || !tellsFirst(c) {
		return nil
	}
	usable := min(d.RetryAfter-d.RetryAfter/clockSlack, maxStaleness)
	if usable <= 0 {
		return nil
	}
	return &entry{
		hash: hash, key: strings.Clone(c.Key), limit: c.Limit,
		at: d.At, retry: d.RetryAfter, reset: d.ResetAfter, sent: sent, usable: usable,
	}
}

// tellsFirst says whether the wait of c, denied with nothing left, is that until the first token comes back.
func tellsFirst(c *headgate.Charge) bool {
	capacity := c.Limit.Capacity()
	return capacity == 0 || c.Cost == 1 || atOnce(c.Limit.Algorithm) && c.Cost <= capacity
}

// atOnce says whether all tokens come back in one instant, so that all costs have the same wait.
func atOnce(a headgate.Algorithm) bool {
	return a == headgate.FixedWindow || a == headgate.AlignedWindow
}

// of says whether e is about the counter of c, if under other numbers.
func (e *entry) of(c *headgate.Charge) bool {
	if e.key != c.Key || e.limit.Algorithm != c.Limit.Algorithm || e.limit.Name != c.Limit.Name {
		return false
	}
	return e.limit.Name != "" || e.limit == c.Limit
}

// answers says whether what the store would say of c at now is known. e is about its counter.
func (e *entry) answers(c *headgate.Charge, now time.Duration) bool {
	return now-e.sent < e.usable && e.limit == c.Limit &&
		(c.Cost == 1 || c.Cost > 0 && (atOnce(c.Limit.Algorithm) || c.Cost > c.Limit.Capacity()))
}

// decision is what the store would say of c at now.
func (e *entry) decision(c *headgate.Charge, now time.Duration) headgate.Decision {
	passed := max(0, now-e.sent).Truncate(time.Microsecond)
	retry := headgate.Never
	if c.Cost <= c.Limit.Capacity() {
		retry = e.retry - passed
	}
	return headgate.Decision{
		Limit: e.limit, RetryAfter: retry, ResetAfter: max(0, e.reset-passed), Source: headgate.FromCache, At: e.at.Add(passed),
	}
}
