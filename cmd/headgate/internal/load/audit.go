package load

import (
	"cmp"
	"slices"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/algorithm"
)

// An Audit compares what was allowed with what the limit permits. It speaks of too much only where that is certain: an allowed request counts as
// inside a span if it was both sent and answered in it, and the span is lengthened by what two clocks may differ.
type Audit struct {
	Limit headgate.Limit `json:"limit"`
	// Keys is how many were asked for, Allowed what all of them were allowed in Span, Permitted the most that so many keys can be.
	Keys      int64  `json:"keys"`
	Span      Millis `json:"span_ms"`
	Allowed   int64  `json:"allowed"`
	Permitted int64  `json:"permitted"`
	// Whole is the key that was allowed the largest share of what it is permitted, from its first allowed request to its last. Window is
	// likewise the key and the window of one period. Both have key -1 if nothing was allowed.
	Whole  Finding `json:"whole"`
	Window Finding `json:"window"`
	// Over is the number of keys that were allowed too much, by either measure.
	Over int `json:"keys_over"`
}

// A Finding is what one key was allowed in Span, which began at From after the start of the run, and the most that it can be permitted.
type Finding struct {
	Key       int    `json:"key"`
	From      Millis `json:"from_ms"`
	Span      Millis `json:"span_ms"`
	Allowed   int64  `json:"allowed"`
	Permitted int64  `json:"permitted"`
}

func (f Finding) over() bool { return f.Allowed > f.Permitted }

// share is how much of what is permitted was allowed, above 1 for what is over; no run has so many requests that it would round to 1.
func (f Finding) share() float64 {
	if f.Allowed == 0 {
		return 0
	}
	return float64(f.Allowed) / float64(f.Permitted)
}

// worse returns the one that was allowed the larger share.
func (f Finding) worse(o Finding) Finding {
	if f.Key < 0 || o.share() > f.share() {
		return o
	}
	return f
}

// audit sorts grants, which it keeps. asked is the number of keys that requests were sent for during span.
func audit(l headgate.Limit, fresh bool, grants []grant, asked int64, span time.Duration) *Audit {
	none := Finding{Key: -1}
	a := &Audit{
		Limit: l, Keys: asked, Span: Millis(span), Allowed: int64(len(grants)), Permitted: algorithm.Mul(Permitted(l, stretch(span), fresh), asked),
		Whole: none, Window: none,
	}
	slices.SortFunc(grants, func(x, y grant) int {
		return cmp.Or(cmp.Compare(x.key, y.key), cmp.Compare(x.started, y.started))
	})
	for len(grants) > 0 {
		n := 1
		for n < len(grants) && grants[n].key == grants[0].key {
			n++
		}
		whole, window := wholeOf(l, fresh, grants[:n]), worstWindow(l, grants[:n])
		if whole.over() || window.over() {
			a.Over++
		}
		a.Whole, a.Window = a.Whole.worse(whole), a.Window.worse(window)
		grants = grants[n:]
	}
	return a
}

// wholeOf looks at all grants of one key, which are in the order of their starts and at least one.
func wholeOf(l headgate.Limit, fresh bool, grants []grant) Finding {
	from, to := grants[0].started, int64(0)
	for _, g := range grants {
		to = max(to, g.ended())
	}
	span := micros(to - from)
	return Finding{
		Key: int(grants[0].key), From: Millis(micros(from)), Span: Millis(span), Allowed: int64(len(grants)),
		Permitted: Permitted(l, stretch(span), fresh),
	}
}

// worstWindow looks for the window of one period that holds the most grants of one key, which are in the order of their starts and at
// least one. Of the requests that took no longer than the window, those inside [a, a+window] are those that ended by a+window but for
// those that started before a.
func worstWindow(l headgate.Limit, grants []grant) Finding {
	window := windowOf(l.Period)
	length := window.Microseconds()
	var starts, ends []int64
	for _, g := range grants {
		if int64(g.took) <= length {
			starts, ends = append(starts, g.started), append(ends, g.ended())
		}
	}
	slices.Sort(ends)
	f := Finding{Key: int(grants[0].key), Span: Millis(window), Permitted: Permitted(l, stretch(window), false)}
	ended := 0
	for before, from := range starts {
		for ended < len(ends) && ends[ended] <= from+length {
			ended++
		}
		if inside := int64(ended - before); inside > f.Allowed {
			f.Allowed, f.From = inside, Millis(micros(from))
		}
	}
	return f
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
