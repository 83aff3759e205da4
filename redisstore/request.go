package redisstore

import (
	"sync/atomic"
	"time"
)

// The verbs of the script.
const (
	verbTake     = 1
	verbCheck    = 2 // decide, and charge nothing
	verbRefund   = 3
	verbReset    = 4
	verbGiveBack = 5 // refund what nobody has made use of
)

// What has become of a request.
const (
	waiting   = 0
	delivered = 1 // its outcome is known to who asked
	gone      = 2 // who asked went away first
)

// A request is a verb and the items that it is about, which share a hash slot on a Cluster.
type request struct {
	verb    byte
	takenAt int64 // of a refund or giving back: microseconds, 0 = not known
	items   []item

	// On its way, see lane.
	deadline time.Time     // zero if it has none
	done     chan struct{} // holds one once the outcome is known
	status   atomic.Int32

	// In its batch: the first of some takes that joined stands for all of them.
	times int      // how many they are
	next  *request // the one after this
	last  *request // of the first: the last of them

	// The outcome.
	err     error
	now     int64 // the instant
	granted bool
	later   int64 // how many takes of those that joined were granted after it, at the same instant
}

// begin makes r a new request.
func (r *request) begin(verb byte, takenAt int64, items []item) *request {
	r.clear()
	r.verb, r.takenAt, r.items = verb, takenAt, items
	return r
}

func (r *request) clear() {
	r.items, r.next, r.last, r.err = nil, nil, nil, nil
	r.times, r.granted, r.later = 0, false, 0
	r.status.Store(waiting)
}

// joins says whether r may travel as one with first, which asks for the same: a take of the same costs from the same counters. None is a log,
// whose entries are kept each by itself.
func (r *request) joins(first *request) bool {
	if first == nil || r.verb != verbTake || first.verb != verbTake || len(r.items) != len(first.items) {
		return false
	}
	for i := range r.items {
		a, b := &r.items[i], &first.items[i]
		if a.rule != b.rule || a.cost != b.cost || a.field != b.field || a.rule.isLog() {
			return false
		}
	}
	return true
}

// charges says whether a grant of r changes anything.
func (r *request) charges() bool {
	for i := range r.items {
		if r.items[i].cost > 0 {
			return true
		}
	}
	return false
}

// fill works out the verdicts of the items.
func (r *request) fill() error {
	for i := range r.items {
		it := &r.items[i]
		v, err := it.read(r)
		if err != nil {
			return err
		}
		it.verdict = v
	}
	return nil
}
