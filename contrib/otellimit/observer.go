package otellimit

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// eventName names the event, and the span, of a decision.
const eventName = "headgate.decision"

// An Observer measures decisions. Make one with [New]; it serves any number of limiters. Safe for concurrent use.
type Observer struct {
	in     instruments
	limits *limits
	tracer trace.Tracer
	trace  Trace
}

var (
	_ headgate.Observer        = (*Observer)(nil)
	_ headgate.BreakerObserver = (*Observer)(nil)
)

// New returns an Observer. Errors match [headgate.ErrInvalidConfig], or are those of the MeterProvider.
func New(cfg Config) (*Observer, error) {
	cfg, err := cfg.check()
	if err != nil {
		return nil, err
	}
	in, err := newInstruments(cfg.MeterProvider.Meter(scope))
	if err != nil {
		return nil, fmt.Errorf("otellimit: instruments: %w", err)
	}
	in.state.Record(context.Background(), int64(headgate.BreakerClosed))
	return &Observer{in: in, limits: newLimits(cfg.MaxLimits), tracer: cfg.TracerProvider.Tracer(scope), trace: cfg.Trace}, nil
}

// Observe implements [headgate.Observer].
func (o *Observer) Observe(ctx context.Context, seen headgate.Observation) {
	switch cause := seen.Cause(ctx); cause {
	case headgate.CauseNone:
	case headgate.CauseInvalid:
		o.in.invalid.Add(ctx, 1)
		return
	case headgate.CauseAbandoned:
		o.in.abandoned.Add(ctx, 1)
		return
	case headgate.CauseTimeout, headgate.CauseBreaker:
		o.in.errors.Add(ctx, 1, o.in.byReason[cause]...)
	default:
		o.in.errors.Add(ctx, 1, o.in.byReason[headgate.CauseFailed]...)
	}
	if int(seen.Decision.Source) >= headgate.Sources {
		return // of a later version of the core
	}
	s := o.limits.of(&seen.Decision)
	o.in.decisions.Add(ctx, 1, s.option...)
	o.in.duration.Record(ctx, seen.Elapsed.Seconds(), o.in.bySource[seen.Decision.Source]...)
	switch o.trace {
	case TraceEvents:
		if span := trace.SpanFromContext(ctx); span.IsRecording() {
			span.AddEvent(eventName, trace.WithAttributes(details(s, &seen)...))
		}
	case TraceSpans:
		o.span(ctx, s, &seen)
	}
}

// span makes a span of a decision that has just been made.
func (o *Observer) span(ctx context.Context, s *series, seen *headgate.Observation) {
	end := time.Now()
	_, span := o.tracer.Start(ctx, eventName, trace.WithTimestamp(end.Add(-seen.Elapsed)))
	if span.IsRecording() {
		span.SetAttributes(details(s, seen)...)
		if seen.Err != nil {
			span.RecordError(seen.Err)
			span.SetStatus(codes.Error, "the store could not decide")
		}
	}
	span.End(trace.WithTimestamp(end))
}

// details are what a trace sees of a decision.
func details(s *series, seen *headgate.Observation) []attribute.KeyValue {
	list := make([]attribute.KeyValue, len(s.attributes), len(s.attributes)+3)
	copy(list, s.attributes)
	list = append(list, attribute.Int64("headgate.cost", seen.Cost), attribute.Int64("headgate.remaining", seen.Decision.Remaining))
	if retry := seen.Decision.RetryAfter; retry > 0 && retry != headgate.Never {
		list = append(list, attribute.Float64("headgate.retry_after", retry.Seconds()))
	}
	return list
}

// ObserveBreaker implements [headgate.BreakerObserver]. Limiters that share an Observer should share a [headgate.Guard] as well: the
// state is that of the breaker which changed last. The OnChange of a Guard may be this method.
func (o *Observer) ObserveBreaker(_, to headgate.BreakerState) {
	if int(to) >= len(o.in.byState) {
		return
	}
	o.in.state.Record(context.Background(), int64(to))
	o.in.changes.Add(context.Background(), 1, o.in.byState[to]...)
}
