package promlimit_test

import (
	"context"
	"fmt"
	"log"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/contrib/promlimit"
	"github.com/prometheus/client_golang/prometheus"
)

func Example() {
	registry := prometheus.NewRegistry() // promhttp.HandlerFor(registry, ...) serves it
	observer, err := promlimit.New(promlimit.Config{Registerer: registry})
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
	for range 5 {
		if _, err := limiter.Allow(context.Background(), "acme"); err != nil {
			log.Fatal(err)
		}
	}
	families, err := registry.Gather()
	if err != nil {
		log.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "headgate_decisions_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				fmt.Print(label.GetName(), "=", label.GetValue(), " ")
			}
			fmt.Println(m.GetCounter().GetValue())
		}
	}
	// Output:
	// decision=allowed limit=3/minute source=store 3
	// decision=denied limit=3/minute source=store 2
}
