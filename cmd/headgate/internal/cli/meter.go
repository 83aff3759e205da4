package cli

import (
	"net/http"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/admin"
	"github.com/headgate/headgate/cmd/headgate/internal/gateway"
	"github.com/headgate/headgate/cmd/headgate/internal/meter"
	"github.com/headgate/headgate/redisstore"
)

// topShown is how many tenants /v1/top lists of each kind.
const topShown = 20

func (r *running) openMeter(*serveCmd) error {
	b := readBuild()
	m, err := meter.New(meter.Options{Visit: gateway.Visit, Build: meter.Build{Version: b.Version, Revision: b.Revision, Go: b.Go}})
	if err != nil {
		return err
	}
	m.Config(r.version)
	r.meter = m
	return m.Replicas(r.replicas)
}

// watchEviction has it known, once serving has begun, whether the servers behind store drop keys.
func (r *running) watchEviction(store headgate.Store) error {
	shared, ok := store.(*redisstore.Store)
	if !ok {
		return nil
	}
	r.eviction = &eviction{store: shared, log: r.log}
	return r.meter.Eviction(r.eviction.evicts.Load, r.eviction.evicted.Load)
}

// measured returns the store, measured, as limiters ask it: behind its guard, where there is
// one behind the denial cache, and behind leases.
func (r *running) measured(store headgate.Store) (headgate.Store, error) {
	cfg := r.config.Load()
	m, err := r.meter.Store(store)
	if err != nil {
		return nil, err
	}
	shared, err := guarded(m, cfg.Store, r.log, r.meter)
	if err != nil || cfg.Store == nil {
		return shared, err
	}
	if cfg.Denials != nil {
		cache, err := cachingDenials(shared, cfg.Denials)
		if err != nil {
			return nil, err
		}
		if err := r.meter.Denials(cache.Saved, cache.Evicted); err != nil {
			return nil, err
		}
		shared = cache
	}
	return r.leasing(shared, cfg)
}

// metricPages puts the pages of what is measured on the admin listener. Profiles are there while the configuration says so.
func (r *running) metricPages(pages *admin.Admin) {
	pages.Handle("GET /metrics", r.meter.Handler())
	pages.Handle("/debug/pprof/", admin.Profiles(func() bool { return r.config.Load().AdminPprof }))
}

// top tells who is allowed and denied most.
func (r *running) top() http.Handler {
	return admin.JSON(func() any { return r.meter.Top().Most(time.Now(), topShown) })
}
