package meter

import (
	"context"
	"errors"
	"time"

	"github.com/headgate/headgate"
	"github.com/prometheus/client_golang/prometheus"
)

// storeTimes are the series of what the shared store is asked.
type storeTimes struct {
	seconds *prometheus.HistogramVec
	by      [len(storeOps)][2]prometheus.Observer // by operation, and by whether it failed
}

var storeOps = [...]string{"take", "refund", "reset"}

func newStoreTimes() *storeTimes {
	t := &storeTimes{seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Name: "store_seconds", Help: "How long the shared store took, by what it was asked and whether it answered.",
		Buckets: []float64{100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 1},
	}, []string{"op", "result"})}
	for i, op := range storeOps {
		t.by[i] = [2]prometheus.Observer{t.seconds.WithLabelValues(op, "ok"), t.seconds.WithLabelValues(op, "error")}
	}
	return t
}

// observe notes a call of the store. An end of the caller's own context says nothing about the store, unless it was a deadline.
func (t *storeTimes) observe(ctx context.Context, op int, start time.Time, err error) {
	if err != nil && ctx.Err() == context.Canceled {
		return
	}
	failed := 0
	if err != nil {
		failed = 1
	}
	t.by[op][failed].Observe(time.Since(start).Seconds())
}

// A timedStore measures the store that it wraps.
type timedStore struct {
	headgate.Store
	times *storeTimes
}

// Store returns store, measured: for a shared one, inside of its [headgate.Guard]. Of a [headgate.Memory] it serves the number of keys
// instead, and returns it as it is. It is called once.
func (m *Meter) Store(store headgate.Store) (headgate.Store, error) {
	memory, ok := store.(*headgate.Memory)
	if !ok {
		return &timedStore{store, m.store}, nil
	}
	for _, c := range []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: namespace, Name: "memory_keys", Help: "Counters that are held in memory, one for each key and limit.",
		}, func() float64 { return float64(memory.Len()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Namespace: namespace, Name: "memory_evicted_total", Help: "Counters dropped before their time, since there was no room for more.",
		}, func() float64 { return float64(memory.Evicted()) }),
	} {
		if err := m.registry.Register(c); err != nil {
			return nil, err
		}
	}
	return memory, nil
}

// Replicas serves the number of gateways that share the store. It is called once, with what is safe for concurrent use.
func (m *Meter) Replicas(count func() int) error {
	return m.registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: namespace, Name: "replicas", Help: "Gateways that share the store, as this one sees it: local decisions divide by it.",
	}, func() float64 { return float64(count()) }))
}

// Eviction serves whether the servers behind the store drop keys when they are full, and how many they have dropped. It is called once,
// with what is safe for concurrent use.
func (m *Meter) Eviction(evicts func() bool, evicted func() int64) error {
	may := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: namespace, Name: "store_evicts", Help: "1 = a server behind the store drops keys, and spent budgets with them, when its memory is full.",
	}, func() float64 {
		if evicts() {
			return 1
		}
		return 0
	})
	did := prometheus.NewCounterFunc(prometheus.CounterOpts{
		Namespace: namespace, Name: "store_evicted_keys_total", Help: "Keys of any kind that the servers behind the store have dropped since they started.",
	}, func() float64 { return float64(evicted()) })
	return errors.Join(m.registry.Register(may), m.registry.Register(did))
}

// Denials serves how many decisions the denial cache made, and how many denials it had no room for. It is called once, with what is safe
// for concurrent use.
func (m *Meter) Denials(saved, evicted func() int64) error {
	did := prometheus.NewCounterFunc(prometheus.CounterOpts{
		Namespace: namespace, Name: "denial_cache_saved_total", Help: "Denials that were answered without asking the shared store.",
	}, func() float64 { return float64(saved()) })
	dropped := prometheus.NewCounterFunc(prometheus.CounterOpts{
		Namespace: namespace, Name: "denial_cache_evicted_total", Help: "Denials that were forgotten before they were over, since there was no room for more.",
	}, func() float64 { return float64(evicted()) })
	return errors.Join(m.registry.Register(did), m.registry.Register(dropped))
}

// Take implements [headgate.Store].
func (s *timedStore) Take(ctx context.Context, first headgate.Charge, more ...headgate.Charge) (headgate.Decision, error) {
	start := time.Now()
	d, err := s.Store.Take(ctx, first, more...)
	s.times.observe(ctx, 0, start, err)
	return d, err
}

// Refund implements [headgate.Store].
func (s *timedStore) Refund(ctx context.Context, first headgate.Charge, more ...headgate.Charge) error {
	start := time.Now()
	err := s.Store.Refund(ctx, first, more...)
	s.times.observe(ctx, 1, start, err)
	return err
}

// Reset implements [headgate.Store].
func (s *timedStore) Reset(ctx context.Context, first headgate.Charge, more ...headgate.Charge) error {
	start := time.Now()
	err := s.Store.Reset(ctx, first, more...)
	s.times.observe(ctx, 2, start, err)
	return err
}
