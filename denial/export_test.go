package denial

import (
	"time"

	"github.com/headgate/headgate"
)

// SetClock makes s read its local time from now, which never goes back.
func SetClock(s *Store, now func() time.Duration) { s.now = now }

// SameCounter says whether what is remembered of a would be found for b, were their hashes to meet.
func SameCounter(a, b headgate.Charge) bool {
	e := entry{key: a.Key, limit: a.Limit}
	return e.of(&b)
}
