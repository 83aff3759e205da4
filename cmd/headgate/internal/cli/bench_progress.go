package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/headgate/headgate/cmd/headgate/internal/load"
)

// eraseLine brings the cursor of a terminal to the start of its line and clears that.
const eraseLine = "\r\x1b[K"

// progressTo writes a line a second: in a terminal always the same one.
func progressTo(w io.Writer) func(load.Progress) {
	if terminal(w) {
		return func(p load.Progress) { _, _ = fmt.Fprint(w, eraseLine+p.Line()) } // a run does not end because nobody can watch
	}
	return func(p load.Progress) { _, _ = fmt.Fprintln(w, p.Line()) }
}

// endProgress makes room for the report.
func endProgress(w io.Writer) {
	if terminal(w) {
		_, _ = fmt.Fprint(w, eraseLine)
	}
}

// terminal says whether w is a device that shows characters to people.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
