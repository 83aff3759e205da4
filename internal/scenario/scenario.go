// Package scenario runs the stories of testdata/scenarios on a store: text that a person can read, and that says what each request is
// answered at which instant.
//
// A story is a file of lines. What begins with # is prose. A key is a word or a quoted Go string, a limit the name it was given, a
// duration that of Go, with days: 1d.
//
//	limit api 10/s burst 20           defines a limit with that Name, in the text form of headgate.ParseLimit
//	limit api 10/s burst 20 unnamed   without a Name: its text form identifies it
//	limit api 10/s burst 20 name x    with another Name than the one by which the story calls it
//	change api 5/s                    gives the limit other numbers; it keeps its Name
//	at 12:00:00.000000                the clock shows this time of 1 March 2026, not before the one it showed
//	advance 1.1s                      the clock runs on
//	back 1h                           the clock steps back
//	take ann api                      asks for one token
//	take ann api 3, bob api 1         asks for several tokens, of several keys and limits, in one request
//	refund ann api 2                  gives tokens back; "refund ann api 2 of first" says that they were taken by the take marked first
//	reset ann api                     forgets what the key has used
//	mark first                        marks the latest take
//	every 1s for 1h take ann api      asks again and again: at once, then each second while less than an hour has passed
//
// What a take must be answered follows it, behind an arrow: one of
//
//	take ann api -> allowed remaining 9 reset 100ms
//	take ann api 3 -> denied remaining 2 retry 100ms reset 1.8s by api
//	take ann api 30 -> denied retry never
//	take ann api 0, bob api 0 -> allowed each 9/0s/100ms 10/0s/0s     each charge's tokens left, retry and reset
//	take ann api -> 1 1 1 0 0                                         asks as often: 1 = allowed, 0 = denied
//	every 1s for 1h take ann api -> 426 allowed                       of all of them
package scenario

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// Run runs each story of dir, the files that end in .txt, as a subtest on a store of its own. open returns the store, which nobody else
// uses, and what sets its clock.
func Run(t *testing.T, dir string, open func(t *testing.T) (headgate.Store, func(now time.Time))) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("no stories in %s", dir)
	}
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(name[:len(name)-len(".txt")], func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			steps, err := Parse(name, string(text))
			if err != nil {
				t.Fatal(err)
			}
			store, setNow := open(t)
			if err := Tell(t.Context(), name, steps, store, setNow); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Tell goes through the steps of a story on a store, and returns the first that comes out otherwise: "file:line: what was got".
func Tell(ctx context.Context, file string, steps []Step, store headgate.Store, setNow func(time.Time)) error {
	s := &story{ctx: ctx, store: store, setNow: setNow, marks: map[string]time.Time{}}
	s.to(Day.Add(12 * time.Hour))
	for _, step := range steps {
		if err := s.do(step); err != nil {
			return fmt.Errorf("%s:%d: %w\n\t%s", file, step.Line, err, step.Text)
		}
	}
	return nil
}

// story is the state of a story that is being told.
type story struct {
	ctx    context.Context
	store  headgate.Store
	setNow func(time.Time)
	now    time.Time
	latest headgate.Decision
	marks  map[string]time.Time
}

func (s *story) to(now time.Time) {
	s.now = now
	s.setNow(now)
}

func (s *story) do(step Step) error {
	ctx := s.ctx
	switch step.Verb {
	case "at":
		if at := Day.Add(step.Duration); !at.Before(s.now) {
			s.to(at)
			return nil
		}
		return fmt.Errorf("the clock shows %s already: use back to turn it back", s.now.Format("15:04:05.000000"))
	case "advance":
		s.to(s.now.Add(step.Duration))
	case "back":
		s.to(s.now.Add(-step.Duration))
	case "mark":
		s.marks[step.Mark] = s.latest.At
	case "refund":
		if step.Mark != "" {
			ctx = headgate.WithTakenAt(ctx, s.marks[step.Mark])
		}
		return s.store.Refund(ctx, step.Charges[0], step.Charges[1:]...)
	case "reset":
		return s.store.Reset(ctx, step.Charges[0], step.Charges[1:]...)
	case "take":
		return s.take(step)
	}
	return nil
}

// take asks as often as the step says and compares.
func (s *story) take(step Step) error {
	allowed := 0
	end := s.now.Add(step.For)
	for i := 0; i < step.times() || step.Every > 0 && s.now.Before(end); i++ {
		d, err := s.store.Take(s.ctx, step.Charges[0], step.Charges[1:]...)
		if err != nil {
			return err
		}
		s.latest = d
		if d.Allowed {
			allowed++
		}
		if step.Want.Row != nil && d.Allowed != step.Want.Row[i] {
			return fmt.Errorf("take %d of %d: %s", i+1, len(step.Want.Row), describe(d))
		}
		if step.Every > 0 {
			s.to(s.now.Add(step.Every))
		}
	}
	if step.Every > 0 {
		if allowed != step.Want.Total {
			return fmt.Errorf("%d allowed, want %d", allowed, step.Want.Total)
		}
		return nil
	}
	return step.Want.check(s.latest)
}
