package headgate

import "errors"

// Errors match these with [errors.Is]. None of them carries a raw key.
var (
	// ErrInvalidLimit is a limit that cannot work: [Limit.Validate] and [ParseLimit] say what is wrong.
	ErrInvalidLimit = errors.New("headgate: invalid limit")
	// ErrInvalidCharge is a charge or a list of charges that cannot be decided.
	ErrInvalidCharge = errors.New("headgate: invalid charge")
	// ErrInvalidConfig is a Config that a constructor refuses.
	ErrInvalidConfig = errors.New("headgate: invalid config")
	// ErrStore is a store that could not decide. The error is a [*StoreError].
	ErrStore = errors.New("headgate: store cannot answer")
	// ErrClosed is, inside an ErrStore, a store that was closed.
	ErrClosed = errors.New("store is closed")
	// ErrBreakerOpen is, inside an ErrStore, a call that a [Guard] did not make, because the store has not answered lately.
	ErrBreakerOpen = errors.New("not asked, since it has not answered lately")
	// ErrExceedsCapacity is what Wait returns at once for more tokens than the limit ever holds.
	ErrExceedsCapacity = errors.New("headgate: more tokens than the limit ever holds")
	// ErrWouldExceedDeadline is what Wait returns at once when the wait would outlast the context's deadline. Such an error matches
	// [context.DeadlineExceeded] too.
	ErrWouldExceedDeadline = errors.New("headgate: wait would exceed the deadline")
)

// A StoreError says that a store could not carry out an operation, and why. It matches [ErrStore] and whatever Err matches.
type StoreError struct {
	Op  string // "take", "refund" or "reset"
	Err error  // why: a time-out, a refused connection, an answer that makes no sense
}

// Error returns "headgate: store cannot answer: OP: reason".
func (e *StoreError) Error() string { return ErrStore.Error() + ": " + e.Op + ": " + e.Err.Error() }

// Unwrap lets errors.Is and errors.As see both ErrStore and the reason.
func (e *StoreError) Unwrap() []error { return []error{ErrStore, e.Err} }
