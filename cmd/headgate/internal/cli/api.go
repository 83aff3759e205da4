package cli

import (
	"errors"
	"log/slog"
	"net"

	"github.com/headgate/headgate/cmd/headgate/internal/admin"
)

// openAPI puts the decision API on the admin listener. Nothing is served yet.
func (r *running) openAPI(pages *admin.Admin) error {
	if r.server.admin == nil {
		return nil
	}
	listener := r.server.admin.listener.Addr()
	api, err := admin.NewAPI(r.config.Load(), admin.APIOptions{Gate: r.gateway, Store: r.store, Loopback: isLoopback(listener)})
	if err != nil {
		return errors.Join(err, r.server.admin.listener.Close(), r.server.public.listener.Close())
	}
	r.api = api
	pages.Handle("/v1/", api)
	pages.Handle("/v1/top", api.Protect(r.top()))
	r.warnOfAPI()
	return nil
}

// warnOfAPI says what is missing for the decision API.
func (r *running) warnOfAPI() {
	addr := slog.String("admin", r.server.admin.addr())
	switch {
	case r.api.Off():
		r.log.Warn("the decision API is off but for forward-auth: the admin listener is not of this host alone, and there is no api.token_sha256", addr)
	case !r.api.Guarded():
		r.log.Warn("everybody on this host may use the decision API: there is no api.token_sha256", addr)
	}
}

// isLoopback says whether a listener is reached from this host alone.
func isLoopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
