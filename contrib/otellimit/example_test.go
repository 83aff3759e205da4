package otellimit_test

import (
	"context"
	"fmt"
	"log"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/contrib/otellimit"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

func Example() {
	reader := metric.NewManualReader() // a program has one that exports
	observer, err := otellimit.New(otellimit.Config{MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))})
	if err != nil {
		log.Fatal(err)
	}
	store, err := headgate.NewMemory(headgate.MemoryConfig{})
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := headgate.New(store, []headgate.Limit{headgate.PerMinute(3)}, headgate.Config{Observer: observer})
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		if _, err := limiter.Allow(context.Background(), "acme"); err != nil {
			log.Fatal(err)
		}
	}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		log.Fatal(err)
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		if sum, ok := m.Data.(metricdata.Sum[int64]); ok {
			for _, p := range sum.DataPoints {
				fmt.Println(m.Name, p.Attributes.Encoded(attribute.DefaultEncoder()), p.Value)
			}
		}
	}
	// Output:
	// headgate.decisions headgate.decision=allowed,headgate.limit=3/minute,headgate.source=store 3
}
