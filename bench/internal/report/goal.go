package report

import (
	"fmt"

	"github.com/headgate/headgate/bench/internal/stats"
)

// BestPeer in Goal.To stands for the best peer of the row.
const BestPeer = "the best peer"

// A Goal is what a figure of Headgate's must reach: so many times the figure of another entry, or of the column's unit.
type Goal struct {
	Column string  `json:"column"`
	Of     string  `json:"of,omitempty"` // an entry; "" = Headgate
	To     string  `json:"to,omitempty"` // an entry, or BestPeer; "" = the target is a figure of its own
	Target float64 `json:"target"`
	Most   bool    `json:"most,omitempty"` // the target is the most that is allowed, and not the least
}

// A Verdict says whether a goal was reached.
type Verdict string

// The verdicts.
const (
	Met         Verdict = "met"
	Short       Verdict = "short"
	NotMeasured Verdict = "not measured"
	NotExact    Verdict = "not exact" // granted more than the limit permits: how fast does not matter
	WithErrors  Verdict = "with errors"
)

// A Result is a goal and what was measured.
type Result struct {
	Goal     Goal
	Column   Column
	Of, To   *Entry // nil = was not measured, or there is none
	Measured float64
	Verdict  Verdict
}

// Result holds a goal against the row.
func (r *Row) Result(g Goal) Result {
	res := Result{Goal: g, Column: r.column(g.Column), Of: r.entry(g.of()), Verdict: NotMeasured}
	switch g.To {
	case "":
	case BestPeer:
		res.To = r.bestPeer(g.Column)
	default:
		res.To = r.entry(g.To)
	}
	if !res.Of.measured(g.Column) || g.To != "" && !res.To.measured(g.Column) {
		return res
	}
	res.Measured, _ = res.Of.Median(g.Column)
	if g.To != "" {
		res.Measured = stats.Ratio(res.Of.Figures[g.Column], res.To.Figures[g.Column])
	}
	res.Verdict = g.judge(res.Of, res.Measured)
	return res
}

func (g Goal) of() string {
	if g.Of == "" {
		return string(Headgate)
	}
	return g.Of
}

func (g Goal) judge(e *Entry, measured float64) Verdict {
	switch reached := measured >= g.Target; {
	case e.Excess > 0:
		return NotExact
	case e.Errors > 0:
		return WithErrors
	case reached && !g.Most || measured <= g.Target && g.Most:
		return Met
	}
	return Short
}

func (e *Entry) measured(column string) bool { return e != nil && len(e.Figures[column]) > 0 }

// target says what the goal asks for.
func (res Result) target() string {
	sign := "≥"
	if res.Goal.Most {
		sign = "≤"
	}
	if res.Goal.To == "" {
		return fmt.Sprintf("%s %s", sign, res.Column.Unit.format(res.Goal.Target))
	}
	return fmt.Sprintf("%s %s × %s", sign, ratio(res.Goal.Target), res.Goal.To)
}

// measured says what was reached.
func (res Result) measured() string {
	switch {
	case res.Verdict == NotMeasured:
		return "–"
	case res.Goal.To == "":
		return res.Column.Unit.format(res.Measured)
	}
	return ratio(res.Measured) + " ×"
}
