package cli

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/admin"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/gateway"
	"github.com/headgate/headgate/cmd/headgate/internal/meter"
	"github.com/headgate/headgate/cmd/headgate/internal/watch"
	"github.com/headgate/headgate/redisstore"
)

// running is all that serve runs, from its start to its end.
type running struct {
	listenFlag string // takes the place of what the file says; "" = it does not
	log        *slog.Logger
	config     atomic.Pointer[config.Config] // in force
	demo       *demo                         // nil = there is a file
	reloader   *config.Reloader              // nil = there is no file
	cert       *certificate                  // nil = plain HTTP
	store      headgate.Store
	members    *redisstore.Membership // nil = the store is in memory
	eviction   *eviction              // nil likewise
	leased     atomic.Pointer[func(headgate.Charge) bool]
	meter      *meter.Meter
	gateway    *gateway.Gateway
	server     *server
	api        *admin.API     // nil = there is no admin listener
	closers    []func() error // in the order in which they were opened
}

// open makes everything, and listens. After an error nothing is left open.
func (c *serveCmd) open(log *slog.Logger) (*running, error) {
	r := &running{listenFlag: c.Listen, log: log}
	for _, step := range []func(*serveCmd) error{r.openConfig, r.openMeter, r.openStore, r.openGateway, r.openServer} {
		if err := step(c); err != nil {
			return nil, errors.Join(err, r.close())
		}
	}
	return r, nil
}

// openConfig reads the file, or makes the demo's configuration.
func (r *running) openConfig(c *serveCmd) error {
	var cfg *config.Config
	var err error
	if c.Config == "" {
		if r.demo, err = newDemo(r.log); err != nil {
			return err
		}
		r.closers = append(r.closers, r.demo.close)
		cfg, err = r.demo.config()
	} else {
		cfg, r.reloader, err = config.LoadToReload(c.Config, watch.Interval, r.log)
	}
	if err != nil {
		return wrongConfig("%v", err)
	}
	if c.Listen != "" {
		if err := config.CheckListen(c.Listen); err != nil {
			return usageError("--listen: %v, want an address such as 127.0.0.1:8080", err)
		}
		cfg.Listen = c.Listen
	}
	r.config.Store(cfg)
	r.cert, err = loadCertificate(cfg.TLS, watch.Interval, r.log)
	return err
}

func (r *running) openStore(*serveCmd) error {
	cfg := r.config.Load().Store
	store, client, closeStore, err := openStore(cfg, r.log)
	if err != nil {
		return err
	}
	r.closers = append(r.closers, closeStore)
	if client != nil {
		members, leave, err := join(client, cfg, r.log)
		if err != nil {
			return err
		}
		r.members = members
		r.closers = append(r.closers, leave)
		if err := r.watchEviction(store); err != nil {
			return err
		}
	}
	r.store, err = r.measured(store)
	return err
}

// replicas returns how many gateways share the store: as many as the configuration says, else as many as are alive.
func (r *running) replicas() int {
	if s := r.config.Load().Store; s != nil && s.Replicas > 0 {
		return s.Replicas
	}
	if r.members != nil {
		return r.members.Replicas()
	}
	return 1
}

func (r *running) openGateway(*serveCmd) error {
	g, err := gateway.New(r.config.Load(), gateway.Options{Store: r.store, Replicas: r.replicas, Log: r.log, Meter: r.meter})
	if err != nil {
		return wrongConfig("%v", err)
	}
	r.gateway = g
	r.closers = append(r.closers, func() error { g.Close(); return nil })
	return nil
}

func (r *running) openServer(c *serveCmd) error {
	health := admin.NewHealth(storeCheck(r.store), r.keysCheck)
	pages := admin.New(health)
	r.metricPages(pages)
	pages.Handle("/v1/config", admin.JSON(func() any { return r.version() }))
	var err error
	r.server, err = newServer(r.config.Load(), serverOptions{
		gateway: r.gateway, admin: pages, cert: r.cert, demo: r.demo, health: health, grace: c.Grace, log: r.log,
		drain: func() time.Duration { return r.config.Load().Drain },
	})
	if err != nil {
		return err
	}
	return r.openAPI(pages)
}

func (r *running) keysCheck(context.Context) string {
	if problem := r.gateway.KeysProblem(); problem != "" {
		return "identity.jwt: the issuer's keys cannot be read: " + problem
	}
	return ""
}

// version says which configuration is in force.
func (r *running) version() config.Version {
	if r.reloader == nil {
		return config.Version{Number: 1}
	}
	return r.reloader.Version()
}

// run serves until ctx ends, and returns once all has ended that it started. With each of hangups it reads its files again.
func (r *running) run(ctx context.Context, hangups <-chan os.Signal) error {
	watching, stop := context.WithCancel(context.Background())
	var background sync.WaitGroup
	background.Go(func() {
		for {
			select {
			case <-hangups:
				r.hangup()
			case <-watching.Done():
				return
			}
		}
	})
	if r.reloader != nil {
		background.Go(func() { r.reloader.Run(watching, r.apply) })
	}
	if r.cert != nil {
		background.Go(func() { r.cert.run(watching) })
	}
	if r.eviction != nil {
		background.Go(func() { r.eviction.run(watching) })
	}
	err := r.server.run(ctx)
	stop()
	background.Wait()
	return err
}

// hangup reads again whatever may have changed.
func (r *running) hangup() {
	if r.reloader == nil {
		r.log.Info("SIGHUP: there is no file to read again")
		return
	}
	r.reloader.Reload()
	if r.cert != nil {
		r.cert.watcher.Look()
	}
}

// apply puts a configuration in force, if that needs no restart.
func (r *running) apply(next *config.Config) error {
	if r.listenFlag != "" {
		next.Listen = r.listenFlag
	}
	if problems := config.Fixed(r.config.Load(), next); len(problems) > 0 {
		return problems
	}
	if err := r.gateway.Reload(next); err != nil {
		return err
	}
	r.lease(next)
	if r.api != nil {
		r.api.Apply(next)
	}
	r.config.Store(next)
	return nil
}

// close closes what was opened, the last first.
func (r *running) close() error {
	var errs []error
	for i := len(r.closers) - 1; i >= 0; i-- {
		errs = append(errs, r.closers[i]())
	}
	return errors.Join(errs...)
}
