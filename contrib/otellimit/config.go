package otellimit

import (
	"fmt"

	"github.com/headgate/headgate"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// DefaultMaxLimits is the MaxLimits of a Config that does not set it.
const DefaultMaxLimits = 100

// Other is the value of headgate.limit for all limits that did not fit under [Config.MaxLimits].
const Other = "other"

// scope is the name of the instrumentation.
const scope = "github.com/headgate/headgate/contrib/otellimit"

// Trace says what traces see of a decision.
type Trace uint8

const (
	// TraceEvents adds an event to the span of the context, if there is one that is recorded. The zero value.
	TraceEvents Trace = iota
	// TraceSpans makes a span of every decision, below that of the context.
	TraceSpans
	// TraceNothing leaves traces alone.
	TraceNothing
)

// Config configures [New]. It is copied; the zero value is good.
type Config struct {
	// MeterProvider gets the metrics; nil = that of otel.GetMeterProvider.
	MeterProvider metric.MeterProvider
	// TracerProvider gets the spans of TraceSpans; nil = that of otel.GetTracerProvider.
	TracerProvider trace.TracerProvider
	// Trace says what traces see. The zero value is [TraceEvents].
	Trace Trace
	// MaxLimits bounds the values of headgate.limit. 0 = DefaultMaxLimits; negative is invalid.
	MaxLimits int
}

// check returns cfg with its defaults filled in, or an error that matches [headgate.ErrInvalidConfig].
func (cfg Config) check() (Config, error) {
	if cfg.MeterProvider == nil {
		cfg.MeterProvider = otel.GetMeterProvider()
	}
	if cfg.TracerProvider == nil {
		cfg.TracerProvider = otel.GetTracerProvider()
	}
	if cfg.MaxLimits == 0 {
		cfg.MaxLimits = DefaultMaxLimits
	}
	switch {
	case cfg.MaxLimits < 0:
		return cfg, fmt.Errorf("%w: otellimit: MaxLimits %d, want 0 (= %d) or more", headgate.ErrInvalidConfig, cfg.MaxLimits, DefaultMaxLimits)
	case cfg.Trace > TraceNothing:
		return cfg, fmt.Errorf("%w: otellimit: unknown Trace %d", headgate.ErrInvalidConfig, cfg.Trace)
	}
	return cfg, nil
}
