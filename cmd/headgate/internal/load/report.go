package load

import (
	"cmp"
	"slices"
	"time"
)

// A Report is what a run measured. The warm-up is in none of its figures.
type Report struct {
	Counts
	Rates    Rates     `json:"rates_per_second"`
	Elapsed  Millis    `json:"elapsed_ms"` // how long requests fell due
	Failures []Failure `json:"failures"`   // the most frequent first
	// Latency is of requests that were completed, from the instant at which each was due. Late is how long after that they were sent.
	Latency struct {
		All     Percentiles `json:"all"`
		Allowed Percentiles `json:"allowed"`
		Denied  Percentiles `json:"denied"`
	} `json:"latency"`
	Late        Percentiles `json:"late_start"`
	Interrupted bool        `json:"interrupted"`
	Audit       *Audit      `json:"audit,omitempty"` // nil = no limit was given
}

// Rates are requests a second over the time in which requests fell due; Completed is over the time until the last was answered.
type Rates struct {
	Due       float64 `json:"due"` // sent or dropped
	Sent      float64 `json:"sent"`
	Completed float64 `json:"completed"`
}

// report closes the books. elapsed is negative if the warm-up was not over.
func (r *recorder) report(elapsed time.Duration) *Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	elapsed = max(elapsed, 0)
	out := &Report{Counts: r.counts, Elapsed: Millis(elapsed), Late: r.late.percentiles(), Failures: []Failure{}}
	out.Latency.All, out.Latency.Allowed, out.Latency.Denied = r.all.percentiles(), r.allowed.percentiles(), r.denied.percentiles()
	out.Rates = Rates{
		Due: rate(r.counts.Sent+r.counts.Dropped, elapsed), Sent: rate(r.counts.Sent, elapsed), Completed: rate(r.counts.Completed, max(elapsed, r.lasted)),
	}
	for _, f := range r.failures {
		out.Failures = append(out.Failures, *f)
	}
	slices.SortFunc(out.Failures, func(a, b Failure) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Kind, b.Kind)) })
	return out
}

func rate(n int64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// A Result says how a run ended.
type Result string

const (
	// Within is the limit held, and no request failed.
	Within Result = "within"
	// Over is a key that was certainly allowed more than the limit permits.
	Over Result = "over"
	// Failing is requests that failed, while no key was over.
	Failing Result = "failed"
	// Unlimited is a run without a limit to compare with, in which no request failed.
	Unlimited Result = "no limit given"
	// Nothing is a run in which no request was completed.
	Nothing Result = "nothing measured"
)

// Result says how the run ended.
func (r *Report) Result() Result {
	switch {
	case r.Audit != nil && r.Audit.Over > 0:
		return Over
	case r.Failed > 0:
		return Failing
	case r.Completed == 0:
		return Nothing
	case r.Audit == nil:
		return Unlimited
	default:
		return Within
	}
}

// Good says whether the run ended well.
func (r *Report) Good() bool {
	result := r.Result()
	return result == Within || result == Unlimited
}
