package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/admin"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
)

// Time-outs of the listeners. There is none for a whole request or response: they may be streams.
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	cutTimeout        = 2 * time.Second // for requests to end once they were cut
)

// A site is one listener and what serves it.
type site struct {
	listener net.Listener
	http     *http.Server
}

func (s *site) addr() string { return s.listener.Addr().String() }

// A server is the program's listeners, from their start to their orderly end.
type server struct {
	public *site
	admin  *site // nil = none
	demo   *site // nil = none
	health *admin.Health
	drain  func() time.Duration // for which requests are still taken once the gateway says that it is not ready
	grace  time.Duration
	log    *slog.Logger
	cut    context.CancelFunc // ends the context of all requests
	under  sync.WaitGroup     // requests under way, upgraded connections among them
}

// serverOptions are what a server serves, and how it ends.
type serverOptions struct {
	gateway http.Handler
	admin   http.Handler
	cert    *certificate // nil = plain HTTP
	demo    *demo        // nil = none
	health  *admin.Health
	drain   func() time.Duration
	grace   time.Duration
	log     *slog.Logger
}

// newServer listens where cfg says. Nothing is served before run.
func newServer(cfg *config.Config, o serverOptions) (*server, error) {
	s := &server{health: o.health, drain: o.drain, grace: o.grace, log: o.log}
	ctx, cut := context.WithCancel(context.Background())
	s.cut = cut
	var err error
	if s.public, err = listen(cfg.Listen, "--listen or listen: in the file", s.counted(o.gateway), ctx, o.log); err != nil {
		return nil, err
	}
	s.public.speak(cfg, o.cert)
	if cfg.Admin != "" {
		if s.admin, err = listen(cfg.Admin, "admin: in the file", o.admin, ctx, o.log); err != nil {
			return nil, errors.Join(err, s.public.listener.Close())
		}
	}
	if o.demo != nil {
		s.demo = &site{o.demo.listener, o.demo.server}
	}
	return s, nil
}

func listen(addr, where string, h http.Handler, base context.Context, log *slog.Logger) (*site, error) {
	l, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is taken by another program: end that one, or choose another address by %s", addr, where)
	} else if err != nil {
		return nil, fmt.Errorf("cannot listen on %s, choose an address of this machine by %s: %w", addr, where, err)
	}
	return &site{l, &http.Server{
		Handler: h, ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout, BaseContext: func(net.Listener) context.Context { return base },
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}}, nil
}

// speak says which protocols the site speaks, and how long a header may be.
func (s *site) speak(cfg *config.Config, cert *certificate) {
	s.http.MaxHeaderBytes = int(cfg.MaxHeader)
	s.http.HTTP2 = &http.HTTP2Config{WriteByteTimeout: config.DefaultStallTimeout}
	s.http.Protocols = new(http.Protocols)
	s.http.Protocols.SetHTTP1(true)
	s.http.Protocols.SetUnencryptedHTTP2(cfg.H2C)
	if cert != nil {
		s.http.Protocols.SetHTTP2(true)
		s.http.TLSConfig = cert.config()
	}
}

// serve serves until the site is closed.
func (s *site) serve() error {
	if s.http.TLSConfig != nil {
		return s.http.ServeTLS(s.listener, "", "")
	}
	return s.http.Serve(s.listener)
}

// counted keeps count of requests under way. http.Server does not for connections that were upgraded.
func (s *server) counted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.under.Add(1)
		defer s.under.Done()
		h.ServeHTTP(w, r)
	})
}

func (s *server) sites() []*site {
	var list []*site
	for _, site := range []*site{s.public, s.demo, s.admin} { // in the order in which they end
		if site != nil {
			list = append(list, site)
		}
	}
	return list
}

// run serves until ctx ends or a listener fails, and returns once everything has ended.
func (s *server) run(ctx context.Context) error {
	sites := s.sites()
	ended := make(chan error, len(sites))
	for _, site := range sites {
		go func() { ended <- site.serve() }()
	}
	var err error
	left := len(sites)
	select {
	case <-ctx.Done():
		s.health.Drain()
		if wait := s.drainFor(ctx); wait > 0 {
			s.log.Info("ending: not ready, requests are still taken", slog.Duration("drain", wait))
			if err = pause(wait, ended); err != nil {
				left--
			}
		}
		s.log.Info("ending: no new requests, those under way may finish", slog.Duration("grace", s.grace))
	case err = <-ended:
		left--
	}
	s.shutdown()
	for range left {
		<-ended // http.ErrServerClosed
	}
	return err
}

// drainFor is how long requests are still taken: whoever sends them has to hear first that this gateway is not ready. A person at a
// terminal does not wait for that.
func (s *server) drainFor(ctx context.Context) time.Duration {
	var by signaled
	if errors.As(context.Cause(ctx), &by) && by.Signal == os.Interrupt {
		return 0
	}
	return s.drain()
}

// pause waits, unless something fails meanwhile.
func pause(d time.Duration, failed <-chan error) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case err := <-failed:
		return err
	}
}

// shutdown stops accepting, lets requests finish for as long as the grace lasts, and then ends those that are left. Upgraded
// connections have no end of their own, so they are ended as soon as the other requests have finished.
func (s *server) shutdown() {
	s.health.Drain()
	ctx, cancel := context.WithTimeout(context.Background(), s.grace)
	defer cancel()
	if err := s.public.http.Shutdown(ctx); err != nil {
		s.log.Warn("the grace is over, requests under way are cut")
	}
	s.cut()
	s.close(s.public)
	s.awaitUnder()
	for _, site := range s.sites()[1:] {
		s.close(site)
	}
}

func (s *server) close(site *site) {
	if err := site.http.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		s.log.Warn("cannot close a listener", slog.Any("error", err))
	}
}

// awaitUnder waits for requests whose context has ended.
func (s *server) awaitUnder() {
	done := make(chan struct{})
	go func() { s.under.Wait(); close(done) }()
	timer := time.NewTimer(cutTimeout)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		s.log.Warn("requests did not end in time")
	}
}
