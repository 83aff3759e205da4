// Package identity says who is calling: which tenant's API key a request bears, and from which address it comes behind trusted
// proxies. A raw key is digested where it is read and goes nowhere else: not into logs, errors, store keys or, unless the
// configuration says so, the request that the upstream sees.
package identity

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"

	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/policy"
)

var (
	// ErrNoKey is a request without an API key where anonymous callers are denied.
	ErrNoKey = errors.New("identity: no API key")
	// ErrUnknownKey is a request with an API key that is no tenant's. It is never taken for an anonymous one.
	ErrUnknownKey = errors.New("identity: unknown API key")
)

// An Identifier knows the tenants by the digests of their API keys. It never changes and is safe for concurrent use.
type Identifier struct {
	header    string // canonical
	shown     string // as the configuration spells it
	anonymous config.Anonymous
	tenants   map[[sha256.Size]byte]tenant
}

type tenant struct {
	digest [sha256.Size]byte
	name   string
}

// New returns an Identifier of c's tenants.
func New(c *config.Config) *Identifier {
	id := &Identifier{
		header: http.CanonicalHeaderKey(c.Identity.Header), shown: c.Identity.Header, anonymous: c.Identity.Anonymous,
		tenants: make(map[[sha256.Size]byte]tenant),
	}
	for _, t := range c.Tenants {
		for _, digest := range t.Keys {
			id.tenants[digest] = tenant{digest: digest, name: t.Name}
		}
	}
	return id
}

// Header returns the name of the header that bears the API key, as the configuration spells it.
func (id *Identifier) Header() string { return id.shown }

// Identify returns the name of the tenant whose key h bears, or [policy.Anonymous]. Two keys in one request are an unknown one.
func (id *Identifier) Identify(h http.Header) (string, error) {
	values := h[id.header]
	switch {
	case len(values) == 0 || len(values) == 1 && values[0] == "":
		if id.anonymous == config.Share {
			return policy.Anonymous, nil
		}
		return "", ErrNoKey
	case len(values) > 1:
		return "", ErrUnknownKey
	}
	return id.lookup(values[0])
}

// lookup finds the tenant by the digest of its key. What the time of the map's lookup tells is about digests of the caller's own
// making, from which no key can be approached; the digests themselves are compared in constant time.
func (id *Identifier) lookup(key string) (string, error) {
	digest := sha256.Sum256([]byte(key))
	t, found := id.tenants[digest]
	if subtle.ConstantTimeCompare(t.digest[:], digest[:]) != 1 || !found {
		return "", ErrUnknownKey
	}
	return t.name, nil
}
