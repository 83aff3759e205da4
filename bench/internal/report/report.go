// Package report holds what was measured, compares it with what must be reached, and writes it as text, as a chart and as JSON.
package report

import (
	"cmp"
	"slices"

	"github.com/headgate/headgate/bench/internal/stats"
)

// A Kind says what an entry is to Headgate.
type Kind string

// The kinds of entries.
const (
	Headgate Kind = "Headgate"
	Peer     Kind = "peer" // does the same
	Wall     Kind = "wall" // does less: what nothing that decides can be faster than
)

// A Report is one run.
type Report struct {
	Environment Environment `json:"environment"`
	Rows        []Row       `json:"rows"`
}

// An Environment is what figures depend on.
type Environment struct {
	Date     string   `json:"date"`
	Command  string   `json:"command"`
	CPU      string   `json:"cpu"`
	Cores    int      `json:"cores"`
	Memory   string   `json:"memory"`
	Kernel   string   `json:"kernel"`
	Go       string   `json:"go"`
	Redis    string   `json:"redis"`
	Headgate string   `json:"headgate"` // commit
	Modules  []Module `json:"modules"`
	Rounds   int      `json:"rounds"`
	Turn     string   `json:"turn"` // how long each contender was measured in a round
	Took     string   `json:"took"`
	Quick    bool     `json:"quick"` // small sizes, to see that everything works
}

// A Module is a dependency that was measured.
type Module struct {
	Path    string `json:"path"`
	Version string `json:"version"`
}

// A Row is one kind of work, done by several contenders.
type Row struct {
	ID      string   `json:"id"`
	Title   string   `json:"title"`
	About   string   `json:"about"`
	Columns []Column `json:"columns"`
	Entries []Entry  `json:"entries"`
	Goals   []Goal   `json:"goals,omitempty"`
	Notes   []string `json:"notes,omitempty"`
	Failure string   `json:"failure,omitempty"` // why there is nothing more
}

// A Column is one quantity that is measured of every entry.
type Column struct {
	Name         string `json:"name"`
	Unit         Unit   `json:"unit"`
	LessIsBetter bool   `json:"less_is_better,omitempty"`
}

// An Entry is what one contender did.
type Entry struct {
	Name    string               `json:"name"`
	Kind    Kind                 `json:"kind"`
	Figures map[string][]float64 `json:"figures,omitempty"` // by column: one of each round, in base units
	Errors  int64                `json:"errors,omitempty"`
	Error   string               `json:"error,omitempty"`   // one of them
	Excess  int64                `json:"excess,omitempty"`  // tokens granted beyond what the limit permits
	Checked bool                 `json:"checked,omitempty"` // whether grants were held against the limit
	Missing string               `json:"missing,omitempty"` // why it was not measured
}

// Add appends the figure of a round.
func (e *Entry) Add(column string, figure float64) {
	if e.Figures == nil {
		e.Figures = make(map[string][]float64)
	}
	e.Figures[column] = append(e.Figures[column], figure)
}

// Median returns the median of a column, and whether it was measured.
func (e *Entry) Median(column string) (float64, bool) {
	figures := e.Figures[column]
	return stats.Median(figures), len(figures) > 0
}

// Faulty says whether the entry's figures cannot be taken at their word.
func (e *Entry) Faulty() bool { return e.Errors > 0 || e.Excess > 0 }

// entry returns the entry of a name; nil = there is none.
func (r *Row) entry(name string) *Entry {
	i := slices.IndexFunc(r.Entries, func(e Entry) bool { return e.Name == name })
	if i < 0 {
		return nil
	}
	return &r.Entries[i]
}

func (r *Row) column(name string) Column {
	i := slices.IndexFunc(r.Columns, func(c Column) bool { return c.Name == name })
	if i < 0 {
		return Column{Name: name}
	}
	return r.Columns[i]
}

// bestPeer returns the peer with the best median of a column; nil = no peer was measured.
func (r *Row) bestPeer(column string) *Entry {
	var peers []*Entry
	for i := range r.Entries {
		if _, ok := r.Entries[i].Median(column); ok && r.Entries[i].Kind == Peer {
			peers = append(peers, &r.Entries[i])
		}
	}
	if len(peers) == 0 {
		return nil
	}
	slices.SortStableFunc(peers, func(a, b *Entry) int {
		x, _ := a.Median(column)
		y, _ := b.Median(column)
		if r.column(column).LessIsBetter {
			return cmp.Compare(x, y)
		}
		return cmp.Compare(y, x)
	})
	return peers[0]
}
