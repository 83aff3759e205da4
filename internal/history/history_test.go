package history_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/history"
	"github.com/headgate/headgate/internal/oracle"
)

// modelStore is the model as a Store, with a fault.
type modelStore struct {
	model *oracle.Model
	now   time.Time
	fault func(d *headgate.Decision)
	lose  bool // refunds and resets
}

func (s *modelStore) Take(_ context.Context, first headgate.Charge, more ...headgate.Charge) (headgate.Decision, error) {
	d := s.model.Take(s.now, headgate.Decision{}, append([]headgate.Charge{first}, more...)...)
	if s.fault != nil {
		s.fault(&d)
	}
	return d, nil
}

func (s *modelStore) Refund(ctx context.Context, first headgate.Charge, more ...headgate.Charge) error {
	if at, _ := headgate.TakenAt(ctx); !s.lose {
		s.model.Refund(s.now, at, append([]headgate.Charge{first}, more...)...)
	}
	return nil
}

func (s *modelStore) Reset(_ context.Context, first headgate.Charge, more ...headgate.Charge) error {
	if !s.lose {
		s.model.Reset(append([]headgate.Charge{first}, more...)...)
	}
	return nil
}

// failing is a testing.TB that keeps what a test fails with.
type failing struct {
	testing.TB
	message string
}

func (f *failing) Fatalf(format string, args ...any) {
	f.message = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// play returns what the history fails with, "" if it does not.
func play(t *testing.T, seed uint64, s *modelStore) string {
	f := &failing{TB: t}
	s.model = oracle.New()
	var done sync.WaitGroup
	done.Go(func() { history.Run(f, seed, s, func(now time.Time) { s.now = now }) })
	done.Wait()
	return f.message
}

// TestRunFindsFaults: the model passes, and a store with any of these faults fails within a few histories, with the steps to see why.
func TestRunFindsFaults(t *testing.T) {
	faults := map[string]*modelStore{
		"remaining": {fault: func(d *headgate.Decision) { d.Remaining++ }},
		"retry": {fault: func(d *headgate.Decision) {
			if !d.Allowed && d.RetryAfter != headgate.Never {
				d.RetryAfter += time.Microsecond
			}
		}},
		"reset":   {fault: func(d *headgate.Decision) { d.ResetAfter = max(d.ResetAfter-time.Microsecond, 0) }},
		"allowed": {fault: func(d *headgate.Decision) { d.Allowed = true }},
		"at":      {fault: func(d *headgate.Decision) { d.At = d.At.Add(time.Microsecond) }},
		"states":  {fault: func(d *headgate.Decision) { d.States = nil }},
		"refund":  {lose: true},
	}
	for seed := range uint64(30) {
		if message := play(t, seed, &modelStore{}); message != "" {
			t.Fatalf("the model differs from itself: %s", message)
		}
	}
	for name, store := range faults {
		message := ""
		for seed := uint64(0); seed < 30 && message == ""; seed++ {
			message = play(t, seed, store)
		}
		if !strings.HasPrefix(message, "history ") || !strings.Contains(message, " take [") {
			t.Errorf("fault %q was not found: %q", name, message)
		}
	}
}
