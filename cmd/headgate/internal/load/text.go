package load

import (
	"bytes"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// WriteText writes the report for people, and its verdict in the last line.
func (r *Report) WriteText(w io.Writer) error {
	var b bytes.Buffer
	r.writeCounts(&b)
	r.writeLatency(&b)
	if r.Audit != nil {
		r.Audit.write(&b)
	}
	fmt.Fprintf(&b, "\nverdict: %s\n", r.verdict())
	_, err := b.WriteTo(w)
	return err
}

func (r *Report) writeCounts(b *bytes.Buffer) {
	if r.Interrupted {
		fmt.Fprintf(b, "interrupted after %v\n\n", r.Elapsed)
	}
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "due\tsent\tcompleted\tallowed\tdenied\terrors\tdropped\tunfinished\t\n%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n",
		r.Sent+r.Dropped, r.Sent, r.Completed, r.Allowed, r.Denied, r.Failed, r.Dropped, r.Unfinished)
	fmt.Fprintf(t, "%.1f/s\t%.1f/s\t%.1f/s\t\t\t\t\t\t\n", r.Rates.Due, r.Rates.Sent, r.Rates.Completed)
	_ = t.Flush() // a buffer takes all
	for _, f := range r.Failures {
		fmt.Fprintf(b, "error: %d x %s", f.Count, f.Kind)
		if f.Example != "" {
			fmt.Fprintf(b, ", such as: %s", f.Example)
		}
		b.WriteByte('\n')
	}
	if r.Dropped > 0 {
		fmt.Fprintf(b, "dropped: %d were due while --max-in-flight were under way; the latencies know nothing of them\n", r.Dropped)
	}
}

func (r *Report) writeLatency(b *bytes.Buffer) {
	b.WriteString("\nlatency, from when each request was due\n")
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "\tp50\tp90\tp99\tp99.9\tmax\t\n")
	for _, row := range []struct {
		name string
		p    Percentiles
	}{{"all", r.Latency.All}, {"allowed", r.Latency.Allowed}, {"denied", r.Latency.Denied}, {"late start", r.Late}} {
		if row.p.Count > 0 {
			fmt.Fprintf(t, "%s\t%v\t%v\t%v\t%v\t%v\t\n", row.name, row.p.P50, row.p.P90, row.p.P99, row.p.P999, row.p.Max)
		}
	}
	_ = t.Flush() // a buffer takes all
}

func (a *Audit) write(b *bytes.Buffer) {
	fmt.Fprintf(b, "\nlimit %v, by this machine's clock (+ 1/%d + %v for that of the limiter)\n", a.Limit, ClockDrift, ClockSlack)
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "\tallowed\tat most permitted\tin\t\n")
	fmt.Fprintf(t, "%d keys in all\t%d\t%d\t%v\t\n", a.Keys, a.Allowed, a.Permitted, a.Span)
	for _, row := range []struct {
		name string
		f    Finding
	}{{"busiest key", a.Whole}, {"worst period", a.Window}} {
		if row.f.Key >= 0 {
			fmt.Fprintf(t, "%s (key %d)\t%d\t%d\t%v\t\n", row.name, row.f.Key, row.f.Allowed, row.f.Permitted, row.f.Span)
		}
	}
	_ = t.Flush() // a buffer takes all
}

func (r *Report) verdict() string {
	switch r.Result() {
	case Over:
		f := r.Audit.Window
		if !f.over() {
			f = r.Audit.Whole
		}
		return fmt.Sprintf("OVER THE LIMIT: key %d was allowed %d in %v, from %v after the start; %v permits at most %d (%d of %d keys were over)",
			f.Key, f.Allowed, f.Span, f.From, r.Audit.Limit, f.Permitted, r.Audit.Over, r.Audit.Keys)
	case Failing:
		return fmt.Sprintf("%d of %d requests failed%s", r.Failed, r.Completed, map[bool]string{true: "; what was allowed is within the limit"}[r.Audit != nil])
	case Nothing:
		return "no request was completed: nothing was measured"
	case Unlimited:
		return "no --limit was given to compare with"
	default:
		return "within the limit"
	}
}

// Line shows what happened in the last second, for people who wait.
func (p Progress) Line() string {
	phase := ""
	if !p.Warm {
		phase = " warming up"
	}
	return fmt.Sprintf("%v of %v%s: sent %d, allowed %d, denied %d, errors %d, dropped %d, in flight %d, p99 %v; %d sent in all",
		p.Elapsed.Round(time.Second), p.Of, phase, p.Sent, p.Allowed, p.Denied, p.Failed, p.Dropped, p.InFlight, p.Latency.P99, p.Total.Sent)
}
