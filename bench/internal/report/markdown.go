package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// WriteMarkdown writes the report as docs/benchmarks.md; chart is the name of the file of WriteChart, beside it.
func (r *Report) WriteMarkdown(w io.Writer, chart string) error {
	b := bufio.NewWriter(w)
	e := r.Environment
	fmt.Fprintf(b, "# Benchmarks\n\nWritten by `make bench`; do not edit. Every figure here comes from one run on one machine, Headgate beside its peers.\n\n")
	if e.Quick {
		fmt.Fprintf(b, "**This was a quick run over small sizes, to see that everything works: its figures say nothing.**\n\n")
	}
	r.writeGoals(b)
	if chart != "" {
		fmt.Fprintf(b, "\n![What each contender did](%s)\n", chart)
	}
	writeReading(b, e)
	writeEnvironment(b, e)
	for i := range r.Rows {
		r.Rows[i].write(b)
	}
	return b.Flush()
}

// WriteGoals writes the table of what must be reached and what was.
func (r *Report) WriteGoals(w io.Writer) error {
	b := bufio.NewWriter(w)
	r.writeGoals(b)
	return b.Flush()
}

func (r *Report) writeGoals(b *bufio.Writer) {
	fmt.Fprintf(b, "## What must be reached\n\n")
	fmt.Fprintf(b, "| work | of | Headgate | beside it | target | measured | |\n|---|---|--:|--:|--:|--:|---|\n")
	for i := range r.Rows {
		row := &r.Rows[i]
		for j, g := range row.Goals {
			res := row.Result(g)
			title := ""
			if j == 0 {
				title = fmt.Sprintf("[%s](#%s)", cell(row.Title), row.ID)
			}
			fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s |\n", title, res.subject(), res.figure(res.Of), res.beside(), res.target(), res.measured(), res.Verdict.mark())
		}
	}
}

// subject says what of Headgate's is held against the target.
func (res Result) subject() string {
	if res.Goal.Of == "" {
		return cell(res.Column.Name)
	}
	return cell(res.Goal.Of + ", " + res.Column.Name)
}

func (res Result) figure(e *Entry) string {
	if !e.measured(res.Goal.Column) {
		return "–"
	}
	median, _ := e.Median(res.Goal.Column)
	return res.Column.Unit.format(median)
}

func (res Result) beside() string {
	switch {
	case res.Goal.To == "":
		return ""
	case res.To == nil:
		return cell(res.Goal.To) + " –"
	}
	return cell(res.To.Name) + " " + res.figure(res.To)
}

func (v Verdict) mark() string {
	if v == Met || v == NotMeasured {
		return string(v)
	}
	return "**" + string(v) + "**"
}

func writeReading(b *bufio.Writer, e Environment) {
	fmt.Fprintf(b, `
## How to read it

Contenders take turns: in each of %d rounds every one of them works for %s, each round beginning with another one. A figure is the median of the
rounds, with the least and the greatest in brackets. A ratio is the median of the ratios within each round, so that what else the machine does
weighs on both sides; absolute figures mean little on another machine.

Peers do the same work as Headgate. A wall does less: it is what nothing that decides can be faster than. Grants are counted for each key and held
against what the limit permits over the time of the turn; a contender that granted more says so, and one with errors too: its figure counts only what it
decided.

`, e.Rounds, e.Turn)
}

func writeEnvironment(b *bufio.Writer, e Environment) {
	fmt.Fprintf(b, "## Where\n\n| | |\n|---|---|\n")
	for _, line := range [][2]string{
		{"date", e.Date}, {"command", "`" + e.Command + "`"}, {"time", e.Took},
		{"CPU", fmt.Sprintf("%s, %d cores", e.CPU, e.Cores)}, {"memory", e.Memory}, {"kernel", e.Kernel},
		{"Go", e.Go}, {"Redis", e.Redis}, {"Headgate", e.Headgate},
	} {
		fmt.Fprintf(b, "| %s | %s |\n", line[0], cell(line[1]))
	}
	for _, m := range e.Modules {
		fmt.Fprintf(b, "| %s | %s |\n", m.Path, m.Version)
	}
	fmt.Fprintf(b, "\nCallers, contenders and servers share the cores.\n")
}

func (r *Row) write(b *bufio.Writer) {
	fmt.Fprintf(b, "\n<a id=\"%s\"></a>\n\n## %s\n\n%s\n", r.ID, r.Title, r.About)
	if r.Failure != "" {
		fmt.Fprintf(b, "\n**Failed**: %s\n", r.Failure)
	}
	if len(r.Entries) > 0 {
		fmt.Fprintf(b, "\n| contender | |")
		for _, c := range r.Columns {
			fmt.Fprintf(b, " %s |", cell(c.Name))
		}
		fmt.Fprintf(b, "%s\n|---|---|%s---|\n", " |", strings.Repeat("--:|", len(r.Columns)))
	}
	for _, e := range r.ranked() {
		name := e.Name
		if e.Kind == Headgate {
			name = "**" + name + "**"
		}
		fmt.Fprintf(b, "| %s | %s |", cell(name), e.Kind)
		for _, c := range r.Columns {
			fmt.Fprintf(b, " %s |", spread(c.Unit, e.Figures[c.Name]))
		}
		fmt.Fprintf(b, " %s |\n", cell(e.remark()))
	}
	for _, note := range r.Notes {
		fmt.Fprintf(b, "\n%s\n", note)
	}
}

// ranked returns the entries, the best by the first column first, and those without a figure last.
func (r *Row) ranked() []Entry {
	entries := slices.Clone(r.Entries)
	if len(r.Columns) == 0 {
		return entries
	}
	first := r.Columns[0]
	slices.SortStableFunc(entries, func(a, b Entry) int {
		x, okX := a.Median(first.Name)
		y, okY := b.Median(first.Name)
		switch {
		case okX != okY:
			return cmp.Compare(len(b.Figures[first.Name]), len(a.Figures[first.Name]))
		case first.LessIsBetter:
			return cmp.Compare(x, y)
		}
		return cmp.Compare(y, x)
	})
	return entries
}

// spread writes the median of figures, and the least and the greatest where there are several.
func spread(u Unit, figures []float64) string {
	if len(figures) == 0 {
		return "–"
	}
	e := Entry{Figures: map[string][]float64{"": figures}}
	median, _ := e.Median("")
	text := u.format(median)
	if low, high := u.format(slices.Min(figures)), u.format(slices.Max(figures)); low != high {
		text += fmt.Sprintf(" (%s – %s)", low, high)
	}
	return text
}

// remark says what is to be known of an entry besides its figures.
func (e *Entry) remark() string {
	var remarks []string
	switch {
	case e.Missing != "":
		remarks = append(remarks, "not measured: "+e.Missing)
	case e.Excess > 0:
		remarks = append(remarks, fmt.Sprintf("granted %s above the limit", number(float64(e.Excess))))
	case e.Checked:
		remarks = append(remarks, "within the limit")
	}
	if e.Errors > 0 {
		remarks = append(remarks, fmt.Sprintf("errors: %s, such as: %s", number(float64(e.Errors)), e.Error))
	}
	return strings.Join(remarks, "; ")
}

// cell makes a text fit for a cell of a table.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace(s)
}
