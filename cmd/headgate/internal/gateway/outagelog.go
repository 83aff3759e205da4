package gateway

import (
	"context"
	"log/slog"
	"sync/atomic"
)

// notLogged is the attribute by which a limiter says how many failures its line stands for, besides its own.
const notLogged = "not_logged"

// oneLineASecond returns a logger for limiters that each write at most a line a second about an outage, and share what they write about:
// they write one together, which stands for all of theirs.
func oneLineASecond(log *slog.Logger) *slog.Logger {
	return slog.New(&outageLog{Handler: log.Handler(), shared: new(outageCount)})
}

// An outageLog is the handler of such a logger.
type outageLog struct {
	slog.Handler
	shared *outageCount
}

// An outageCount is what those who share a log have not written.
type outageCount struct {
	lull lull
	held atomic.Int64 // failures that lines which were held back stood for
}

// Handle implements [slog.Handler].
func (h *outageLog) Handle(ctx context.Context, r slog.Record) error {
	stoodFor := int64(0)
	rest := make([]slog.Attr, 0, r.NumAttrs())
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == notLogged && a.Value.Kind() == slog.KindInt64 {
			stoodFor = a.Value.Int64()
		} else {
			rest = append(rest, a)
		}
		return true
	})
	lines, now := h.shared.lull.pass(r.Time)
	if !now {
		h.shared.held.Add(stoodFor)
		return nil
	}
	out := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	out.AddAttrs(slog.Int64(notLogged, stoodFor+lines+h.shared.held.Swap(0)))
	out.AddAttrs(rest...)
	return h.Handler.Handle(ctx, out)
}

// WithAttrs implements [slog.Handler].
func (h *outageLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &outageLog{h.Handler.WithAttrs(attrs), h.shared}
}

// WithGroup implements [slog.Handler].
func (h *outageLog) WithGroup(name string) slog.Handler {
	return &outageLog{h.Handler.WithGroup(name), h.shared}
}
