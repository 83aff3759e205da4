package report

import (
	"bufio"
	"fmt"
	"html"
	"io"
)

// The measures of the chart, in pixels.
const (
	chartWidth  = 840
	labelWidth  = 270
	valueWidth  = 150
	barHeight   = 16
	barPitch    = 22
	panelHead   = 48
	panelGap    = 18
	chartMargin = 16
	chartHead   = 64
)

// chartStyle has the colours of both schemes: the reader's system says which one is in force.
const chartStyle = `<style>
  svg { background: #ffffff; }
  text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: #1f2328; }
  .title { font-size: 18px; font-weight: 600; }
  .row { font-size: 14px; font-weight: 600; }
  .quiet { fill: #59636e; font-size: 12px; }
  .us { font-weight: 600; }
  .Headgate { fill: #0969da; }
  .peer { fill: #8c959f; }
  .wall { fill: none; stroke: #59636e; stroke-dasharray: 4 3; }
  @media (prefers-color-scheme: dark) {
    svg { background: #0d1117; }
    text { fill: #e6edf3; }
    .quiet { fill: #9198a1; }
    .Headgate { fill: #4493f8; }
    .peer { fill: #656c76; }
    .wall { stroke: #9198a1; }
  }
</style>
`

// WriteChart writes an SVG with a panel of bars for each row: the medians of its first column.
func (r *Report) WriteChart(w io.Writer) error {
	var panels []panel
	height := chartHead + chartMargin
	for i := range r.Rows {
		if p := newPanel(&r.Rows[i]); len(p.bars) > 0 {
			panels = append(panels, p)
			height += p.height()
		}
	}
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="title">`+"\n", chartWidth, height, chartWidth, height)
	fmt.Fprintf(b, "<title id=\"title\">Headgate beside its peers</title>\n%s", chartStyle)
	fmt.Fprintf(b, "<text class=\"title\" x=\"%d\" y=\"28\">Headgate beside its peers</text>\n", chartMargin)
	writeLegend(b)
	y := chartHead
	for _, p := range panels {
		p.write(b, y)
		y += p.height()
	}
	fmt.Fprintf(b, "</svg>\n")
	return b.Flush()
}

func writeLegend(b *bufio.Writer) {
	x := chartMargin
	for _, k := range []struct {
		kind Kind
		text string
	}{{Headgate, "Headgate"}, {Peer, "peer: does the same"}, {Wall, "wall: does less, and cannot be beaten"}} {
		fmt.Fprintf(b, "<rect class=\"%s\" x=\"%d\" y=\"41\" width=\"12\" height=\"12\" rx=\"2\"/><text class=\"quiet\" x=\"%d\" y=\"51\">%s</text>\n", k.kind, x, x+18, k.text)
		x += 40 + 7*len(k.text)
	}
}

// A panel is the bars of a row.
type panel struct {
	title string
	axis  string
	most  float64
	bars  []bar
}

type bar struct {
	name  string
	kind  Kind
	value float64
	text  string
}

func newPanel(r *Row) panel {
	p := panel{title: r.Title}
	if len(r.Columns) == 0 {
		return p
	}
	c := r.Columns[0]
	p.axis = c.Name + ", more is better"
	if c.LessIsBetter {
		p.axis = c.Name + ", less is better"
	}
	for _, e := range r.ranked() {
		value, ok := e.Median(c.Name)
		if !ok {
			continue
		}
		text := c.Unit.format(value)
		switch {
		case e.Excess > 0:
			text += ", not exact"
		case e.Errors > 0:
			text += ", with errors"
		}
		p.bars = append(p.bars, bar{name: e.Name, kind: e.Kind, value: value, text: text})
		p.most = max(p.most, value)
	}
	return p
}

func (p panel) height() int { return panelHead + len(p.bars)*barPitch + panelGap }

func (p panel) write(b *bufio.Writer, y int) {
	fmt.Fprintf(b, "<text class=\"row\" x=\"%d\" y=\"%d\">%s</text>\n", chartMargin, y+18, html.EscapeString(p.title))
	fmt.Fprintf(b, "<text class=\"quiet\" x=\"%d\" y=\"%d\">%s</text>\n", chartMargin, y+36, html.EscapeString(p.axis))
	const room = chartWidth - 2*chartMargin - labelWidth - valueWidth
	for i, bar := range p.bars {
		top := y + panelHead + i*barPitch
		length := 1.0
		if p.most > 0 {
			length = max(1, bar.value/p.most*room)
		}
		class := ""
		if bar.kind == Headgate {
			class = ` class="us"`
		}
		fmt.Fprintf(b, "<text%s x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>", class, chartMargin+labelWidth-8, top+13, html.EscapeString(bar.name))
		fmt.Fprintf(b, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" rx=\"2\"/>", bar.kind, chartMargin+labelWidth, top, length, barHeight)
		fmt.Fprintf(b, "<text%s x=\"%.1f\" y=\"%d\">%s</text>\n", class, float64(chartMargin+labelWidth)+length+6, top+13, html.EscapeString(bar.text))
	}
}
