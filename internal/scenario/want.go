package scenario

import (
	"fmt"
	"time"

	"github.com/headgate/headgate"
)

// Want is what a take must be answered. What is nil is not looked at.
type Want struct {
	Row     []bool // one take each
	Total   int    // of a step with Every
	Allowed *bool
	By      *headgate.Limit
	Left    *int64
	Retry   *time.Duration
	Reset   *time.Duration
	Each    []State
}

// State is what a charge of several must be answered.
type State struct {
	Left         int64
	Retry, Reset time.Duration
}

// times returns how often a step without Every asks.
func (s Step) times() int {
	switch {
	case s.Every > 0:
		return 0
	case s.Want.Row != nil:
		return len(s.Want.Row)
	}
	return 1
}

func describe(d headgate.Decision) string {
	verdict := "denied"
	if d.Allowed {
		verdict = "allowed"
	}
	text := fmt.Sprintf("%s remaining %d retry %s reset %v by %q (%v)", verdict, d.Remaining, wait(d.RetryAfter), d.ResetAfter, d.Limit.Name, d.Limit)
	if len(d.States) > 0 {
		text += " each"
	}
	for _, s := range d.States {
		text += fmt.Sprintf(" %d/%s/%v", s.Remaining, wait(s.RetryAfter), s.ResetAfter)
	}
	return text
}

func wait(d time.Duration) string {
	if d == headgate.Never {
		return "never"
	}
	return d.String()
}

func differs[T comparable](want *T, got T) bool { return want != nil && *want != got }

// check compares d, after the last take of the step.
func (w Want) check(d headgate.Decision) error {
	wrong := differs(w.Allowed, d.Allowed) || differs(w.By, d.Limit) || differs(w.Left, d.Remaining) ||
		differs(w.Retry, d.RetryAfter) || differs(w.Reset, d.ResetAfter)
	if w.Each != nil {
		wrong = wrong || len(w.Each) != len(d.States)
		for i, s := range d.States {
			wrong = wrong || i >= len(w.Each) || w.Each[i] != State{s.Remaining, s.RetryAfter, s.ResetAfter}
		}
	}
	if wrong {
		return fmt.Errorf("got %s", describe(d))
	}
	return nil
}
