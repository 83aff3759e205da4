// Package trial has contenders take turns.
package trial

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/bench/internal/report"
)

// A Row measures one kind of work. Servers that it starts are tied to tb. When ctx ends it returns soon, with the error of ctx.
type Row struct {
	ID, Title string
	Measure   func(ctx context.Context, tb testing.TB, s Settings) (report.Row, error)
}

// Settings say how much is measured.
type Settings struct {
	Rounds      int
	Turn        time.Duration // of one contender in one round
	Callers     int
	ManyCallers int
	Keys        int    // of the rows that are about many keys in Redis
	RedisKeys   int    // of the row that is about Redis's memory
	MemoryKeys  int    // in process
	HugeKeys    int    // in process, of the row that is about memory and pauses
	Program     string // headgate's, already built; "" = it is built
	RLS         []Named
	Progress    func(text string) // what has been done
}

// A Named is a server of somebody else's.
type Named struct{ Name, Addr string }

// Turns has contenders take turns: in each round every one once, the order rotated by one from round to round. turn measures the contender
// of an index in names, and returns a few words on it for Progress.
func (s Settings) Turns(ctx context.Context, names []string, turn func(contender int) (string, error)) error {
	said := make([]string, len(names))
	for round := range s.Rounds {
		for i := range names {
			if err := ctx.Err(); err != nil {
				return err
			}
			contender := (round + i) % len(names)
			words, err := turn(contender)
			if err != nil {
				return fmt.Errorf("%s: %w", names[contender], err)
			}
			said[contender] = names[contender] + " " + words
		}
		s.Progress(fmt.Sprintf("round %d of %d: %s", round+1, s.Rounds, strings.Join(said, ", ")))
	}
	return nil
}
