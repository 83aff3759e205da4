package headgate_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

func TestStoreError(t *testing.T) {
	err := fmt.Errorf("asking: %w", &headgate.StoreError{Op: "take", Err: fmt.Errorf("reading: %w", io.ErrUnexpectedEOF)})
	if !errors.Is(err, headgate.ErrStore) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v matches not both ErrStore and its reason", err)
	}
	store, ok := errors.AsType[*headgate.StoreError](err)
	if !ok || store.Op != "take" {
		t.Errorf("%v holds no StoreError of a take", err)
	}
	if want := "asking: headgate: store cannot answer: take: reading: unexpected EOF"; err.Error() != want {
		t.Errorf("message %q, want %q", err, want)
	}
}

func TestSentinelsAreDistinct(t *testing.T) {
	sentinels := []error{headgate.ErrInvalidLimit, headgate.ErrInvalidCharge, headgate.ErrInvalidConfig, headgate.ErrStore, headgate.ErrClosed,
		headgate.ErrExceedsCapacity, headgate.ErrWouldExceedDeadline}
	for i, a := range sentinels {
		for j, b := range sentinels {
			if errors.Is(a, b) != (i == j) {
				t.Errorf("errors.Is(%v, %v) = %v", a, b, i != j)
			}
		}
	}
}

// Whatever a store returns matches ErrStore when it comes out of a Limiter, with the operation and the store's own reason.
func TestStoreErrorsAreWrapped(t *testing.T) {
	for _, cause := range []error{errBroken, &headgate.StoreError{Op: "take", Err: errBroken}, context.DeadlineExceeded} {
		l := limiterOn(t, failing{cause}, headgate.Config{Logger: quiet()}, "5/s")
		_, allow := l.Allow(t.Context(), "k")
		for op, err := range map[string]error{
			"take": allow, "refund": l.Refund(t.Context(), "k", 1), "reset": l.Reset(t.Context(), "k"), "wait": l.Wait(t.Context(), "k", 1),
		} {
			_, typed := errors.AsType[*headgate.StoreError](err)
			if !errors.Is(err, headgate.ErrStore) || !errors.Is(err, cause) || !typed {
				t.Errorf("%s: %v, want a StoreError that matches %v", op, err, cause)
			}
		}
	}
}

func TestClosedMemory(t *testing.T) {
	m := inMemory(t)
	l := limiterOn(t, m, headgate.Config{}, "5/s")
	m.Close()
	_, allow := l.Allow(t.Context(), "k")
	for op, err := range map[string]error{"allow": allow, "refund": l.Refund(t.Context(), "k", 1), "reset": l.Reset(t.Context(), "k"), "wait": l.Wait(t.Context(), "k", 1)} {
		if !errors.Is(err, headgate.ErrStore) || !errors.Is(err, headgate.ErrClosed) {
			t.Errorf("%s: %v, want ErrStore and ErrClosed", op, err)
		}
	}
}

func TestWaitErrorsMatch(t *testing.T) {
	l := limiterOn(t, inMemory(t), headgate.Config{}, "1/hour")
	mustAllow(t, l, "k", 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := l.Wait(ctx, "k", 1); !errors.Is(err, headgate.ErrWouldExceedDeadline) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want ErrWouldExceedDeadline and DeadlineExceeded", err)
	}
	if err := l.Wait(ctx, "k", 2); !errors.Is(err, headgate.ErrExceedsCapacity) {
		t.Errorf("%v, want ErrExceedsCapacity", err)
	}
}
