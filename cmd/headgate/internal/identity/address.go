package identity

import (
	"net/http"
	"net/netip"

	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/httplimit"
)

// Addresses knows which peers are the deployment's own proxies. It never changes and is safe for concurrent use.
type Addresses struct {
	trusted []netip.Prefix
	client  *httplimit.ClientIP
}

// NewAddresses returns the Addresses of c.
func NewAddresses(c *config.Config) (*Addresses, error) {
	client, err := httplimit.NewClientIP(httplimit.ClientIPConfig{Trusted: c.Identity.TrustedProxies})
	if err != nil {
		return nil, err
	}
	return &Addresses{trusted: c.Identity.TrustedProxies, client: client}, nil
}

// TrustsPeer says whether r was sent by a trusted proxy, so that its X-Forwarded-* fields are believed.
func (a *Addresses) TrustsPeer(r *http.Request) bool {
	if len(a.trusted) == 0 {
		return false
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	addr := peer.Addr().Unmap().WithZone("")
	for _, network := range a.trusted {
		if network.Contains(addr) {
			return true
		}
	}
	return false
}

// Client returns the address that r came from, as far as trusted proxies tell; "" where the connection has no address.
func (a *Addresses) Client(r *http.Request) string {
	addr, err := a.client.Addr(r)
	if err != nil {
		return ""
	}
	return addr.String()
}
