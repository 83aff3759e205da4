package redisstore

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/algorithm"
)

// A rule is a limit as the script wants it.
type rule struct {
	algorithm.Params
	named bool   // its numbers may change under its name
	class int    // of the states' lifetimes
	id    string // the first part of its fields: [headgate.Limit.ID] and a zero byte
	code  [29]byte
}

// namedLimit marks, in the script's byte for the algorithm, a limit that has a name.
const namedLimit = 8

func newRule(l headgate.Limit) *rule {
	r := &rule{
		Params: algorithm.NewParams(algorithm.Kind(l.Algorithm), l.Count, l.Period.Microseconds(), l.Burst),
		named:  l.Name != "",
		id:     string(append(l.AppendID(make([]byte, 0, 48)), 0)),
	}
	r.class = classOf(r.Params)
	code := append(r.code[:0], byte(r.Kind))
	if r.named {
		code[0] |= namedLimit
	}
	for _, n := range [...]int64{r.Count, r.Period, r.Capacity, r.Life} {
		code = appendUint56(code, n)
	}
	return r
}

// isLog says whether the rule's states are sorted sets of their own.
func (r *rule) isLog() bool { return r.Kind == algorithm.SlidingLog }

// field names the counter of key within its shard. The rule's part holds no zero byte but its last, so any bytes in key are unambiguous.
func (r *rule) field(key string) string { return r.id + key }

// maxRules bounds how many rules are remembered.
const maxRules = 256

// rules remembers the rules of the limits that are in use. Safe for concurrent use.
type rules struct {
	mu    sync.Mutex
	known atomic.Pointer[map[headgate.Limit]*rule] // never changed, but replaced
}

// of returns the rule of a valid limit.
func (rs *rules) of(l headgate.Limit) *rule {
	if known := rs.known.Load(); known != nil {
		if r, ok := (*known)[l]; ok {
			return r
		}
	}
	r := newRule(l)
	rs.mu.Lock()
	defer rs.mu.Unlock()
	next := map[headgate.Limit]*rule{}
	if known := rs.known.Load(); known != nil && len(*known) < maxRules { // else they begin anew
		for limit, r := range *known {
			next[limit] = r
		}
	}
	if other, ok := next[l]; ok {
		return other
	}
	next[l] = r
	rs.known.Store(&next)
	return r
}

func appendUint56(b []byte, n int64) []byte {
	var buf [8]byte
	binary.BigEndian.PutUint64(buf[:], uint64(n))
	return append(b, buf[1:]...)
}
