package headgate

import (
	"context"
	"fmt"
	"time"
)

// A Store keeps what each key has used, and decides. All of its methods are safe for concurrent use.
//
// The one rule of a Store: reading, deciding and writing are one atomic step at one instant of the store's own clock. A store has a
// counter per key and identity of the limit ([Limit.ID]), and keeps it for at least as long as it matters.
//
// A store does not keep the slice of charges after it returned: callers use it again.
//
// Invalid charges are refused before any I/O ([CheckCharges]); a store that cannot answer returns a [*StoreError]. Package storetest
// holds the suite that every Store passes.
type Store interface {
	// Take decides all charges together: every one has room and all are charged, or none is. A denial is a Decision with a nil
	// error. Charges of the same key and limit add up. With an error the outcome is unknown: the tokens may have been taken.
	// Take never sends a request again whose outcome it does not know.
	Take(ctx context.Context, first Charge, more ...Charge) (Decision, error)
	// Refund gives back Cost tokens of each charge, which an earlier Take took: never above the capacity, and only into the window
	// that was charged. Where the context says when they were taken ([WithTakenAt]), a window that has since begun is left alone;
	// where it does not, the window under way is taken to be the one.
	Refund(ctx context.Context, first Charge, more ...Charge) error
	// Reset forgets what each key has used under each limit.
	Reset(ctx context.Context, first Charge, more ...Charge) error
}

// ID returns what identifies the counter of l besides the key: two limits share a counter exactly if their IDs are equal.
func (l Limit) ID() string { return string(l.AppendID(make([]byte, 0, 48))) }

// AppendID appends [Limit.ID] to b. It holds no byte below 0x20, so that a store may separate it from the key by one.
func (l Limit) AppendID(b []byte) []byte {
	if l.Name == "" {
		return l.appendText(append(b, '='))
	}
	return append(append(b, "bfawl"[min(int(l.Algorithm), 4)]), l.Name...)
}

// CheckCharges validates the charges of one request, for those who write a [Store]. Besides each charge's own validity, it refuses more
// than MaxCharges of them, and two that give one counter different numbers: same key, name and algorithm, but another limit.
func CheckCharges(first Charge, more []Charge) error { return checkCharges(&first, more) }

// checkCharges is CheckCharges without a copy of the first charge.
func checkCharges(first *Charge, more []Charge) error {
	if err := first.check(); err != nil {
		return err
	}
	if len(more) == 0 {
		return nil
	}
	if len(more) >= MaxCharges {
		return fmt.Errorf("%w: %d charges in one request, want at most %d", ErrInvalidCharge, 1+len(more), MaxCharges)
	}
	for i, c := range more {
		if err := c.Validate(); err != nil {
			return fmt.Errorf("charge %d: %w", i+2, err)
		}
		if conflict(*first, c) {
			return fmt.Errorf("%w: charges 1 and %d hold one key to limits of the name %q with different numbers", ErrInvalidCharge, i+2, c.Limit.Name)
		}
		for j, earlier := range more[:i] {
			if conflict(earlier, c) {
				return fmt.Errorf("%w: charges %d and %d hold one key to limits of the name %q with different numbers", ErrInvalidCharge, j+2, i+2, c.Limit.Name)
			}
		}
	}
	return nil
}

// conflict says whether a and b name one counter but not one limit.
func conflict(a, b Charge) bool {
	return a.Limit.Name != "" && a.Limit.Name == b.Limit.Name && a.Limit.Algorithm == b.Limit.Algorithm && a.Limit != b.Limit && a.Key == b.Key
}

type takenAtKey struct{}

// WithTakenAt tells a Refund made with the returned context when the tokens were taken: the At of the Decision that took them. The
// zero time leaves ctx as it is.
func WithTakenAt(ctx context.Context, at time.Time) context.Context {
	if at.IsZero() {
		return ctx
	}
	return context.WithValue(ctx, takenAtKey{}, at)
}

// TakenAt returns what [WithTakenAt] said, for those who write a [Store]; false if nothing was.
func TakenAt(ctx context.Context) (time.Time, bool) {
	at, ok := ctx.Value(takenAtKey{}).(time.Time)
	return at, ok
}
