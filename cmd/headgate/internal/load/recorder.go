package load

import (
	"sync"
	"time"
)

// A sample is one request; its instants are times since the start of the run.
type sample struct {
	key                 int
	due, started, ended time.Duration
	outcome             Outcome
	cut                 bool // ended by the generator, not by the target
}

// A recorder counts. What was due before warmup is over is not counted, but for the progress.
type recorder struct {
	warmup time.Duration

	mu       sync.Mutex
	counts   Counts
	failures map[string]*Failure
	grants   ledger
	lasted   time.Duration // from the end of the warm-up to the end of the last request
	shown    Counts        // of all requests, since the last progress
	total    Counts        // of all requests

	all, allowed, denied, late, recent histogram
}

func newRecorder(warmup time.Duration) *recorder {
	return &recorder{
		warmup: warmup, failures: make(map[string]*Failure),
		all: newHistogram(), allowed: newHistogram(), denied: newHistogram(), late: newHistogram(), recent: newHistogram(),
	}
}

func (r *recorder) drop(due time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shown.Dropped++
	if due >= r.warmup {
		r.counts.Dropped++
	}
}

func (r *recorder) send(s sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shown.Sent++
	if s.due < r.warmup {
		return
	}
	r.counts.Sent++
	r.late.add(s.started - s.due)
}

func (r *recorder) record(s sample) {
	latency := s.ended - s.due
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shown.add(s)
	r.recent.add(latency)
	if s.due < r.warmup {
		return
	}
	r.counts.add(s)
	r.lasted = max(r.lasted, s.ended-r.warmup)
	if s.cut {
		return
	}
	r.all.add(latency)
	switch s.outcome.Verdict {
	case Allowed:
		r.allowed.add(latency)
		r.grants.add(s)
	case Denied:
		r.denied.add(latency)
	default:
		r.fail(s.outcome)
	}
}

// fail counts a failure by its kind. Kinds are few: words, and the statuses of HTTP.
func (r *recorder) fail(o Outcome) {
	f := r.failures[o.Kind]
	if f == nil {
		f = &Failure{Kind: o.Kind}
		if o.Err != nil {
			f.Example = o.Err.Error()
		}
		r.failures[o.Kind] = f
	}
	f.Count++
}

// progress returns what happened since the last call.
func (r *recorder) progress(elapsed, of time.Duration, inFlight int64) Progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := Progress{Elapsed: elapsed, Of: of, Warm: elapsed >= r.warmup, InFlight: inFlight, Counts: r.shown, Latency: r.recent.percentiles()}
	r.total.merge(r.shown)
	p.Total = r.total
	r.shown = Counts{}
	r.recent.reset()
	return p
}
