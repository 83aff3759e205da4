package load

import "time"

// Counts are numbers of requests. Sent = Completed + Unfinished once a run is over, and Completed = Allowed + Denied + Failed.
type Counts struct {
	Sent       int64 `json:"sent"`
	Completed  int64 `json:"completed"`
	Allowed    int64 `json:"allowed"`
	Denied     int64 `json:"denied"`
	Failed     int64 `json:"failed"`
	Dropped    int64 `json:"dropped"`    // due and never sent, since too many were under way
	Unfinished int64 `json:"unfinished"` // under way when the run was interrupted
}

func (c *Counts) add(s sample) {
	if s.cut {
		c.Unfinished++
		return
	}
	c.Completed++
	switch s.outcome.Verdict {
	case Allowed:
		c.Allowed++
	case Denied:
		c.Denied++
	default:
		c.Failed++
	}
}

func (c *Counts) merge(o Counts) {
	c.Sent += o.Sent
	c.Completed += o.Completed
	c.Allowed += o.Allowed
	c.Denied += o.Denied
	c.Failed += o.Failed
	c.Dropped += o.Dropped
	c.Unfinished += o.Unfinished
}

// A Progress is what happened since the Progress before it.
type Progress struct {
	Elapsed, Of time.Duration
	Warm        bool // the warm-up is over
	InFlight    int64
	Counts             // since the last one
	Total       Counts // since the start, warm-up included
	Latency     Percentiles
}

// A Failure is how often requests failed in one way. Example is the first such error.
type Failure struct {
	Kind    string `json:"kind"`
	Count   int64  `json:"count"`
	Example string `json:"example,omitempty"`
}
