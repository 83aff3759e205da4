package cli

import (
	"context"
	"log/slog"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/policy"
	"github.com/headgate/headgate/lease"
)

// returnTimeout bounds giving back, at the end, what was leased from the store.
const returnTimeout = time.Second

// leasing puts leases before a shared store, for the limits that the configuration in force says. They stand before all else: what is held is
// spent whether the store answers or not, and what is given back is seen by the denial cache.
func (r *running) leasing(store headgate.Store, cfg *config.Config) (headgate.Store, error) {
	r.lease(cfg)
	s, err := lease.New(store, lease.Config{
		Lifetime: cfg.Lease, Timeout: cfg.Store.Timeout,
		Leases: func(c headgate.Charge) bool { return (*r.leased.Load())(c) },
	})
	if err != nil {
		return nil, err
	}
	r.closers = append(r.closers, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), returnTimeout)
		defer cancel()
		if err := s.Close(ctx); err != nil { // its time is over by itself, and shutting down is no failure for it
			r.log.Debug("could not give back what was leased", slog.Any("error", err))
		}
		return nil
	})
	return s, r.meter.Leases(s.Stats)
}

// lease puts the configuration's choice of limits that are leased in force.
func (r *running) lease(cfg *config.Config) {
	leases := policy.Leases(cfg)
	r.leased.Store(&leases)
}
