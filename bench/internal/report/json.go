package report

import (
	"encoding/json"
	"io"
)

// WriteJSON writes the report with all figures of all rounds.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
