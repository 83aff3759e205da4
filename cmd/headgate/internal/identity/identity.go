// Package identity says who is calling: which tenant's API key or token a request bears, and from which address it comes behind trusted
// proxies. A raw key or token is looked at where it is read and goes nowhere else: not into logs, errors, store keys or, unless the
// configuration says so, the request that the upstream sees. Nothing else in a request names a tenant.
package identity

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/policy"
)

var (
	// ErrNoKey is a request without an API key or token where anonymous callers are denied.
	ErrNoKey = errors.New("identity: no API key or token")
	// ErrUnknownKey is a request with an API key that is no tenant's. It is never taken for an anonymous one.
	ErrUnknownKey = errors.New("identity: unknown API key")
	// ErrToken is a request with a token that is not believed. The error is a [*TokenError]. It is never taken for an anonymous one.
	ErrToken = errors.New("identity: token is not believed")
	// ErrNoTenant is a request with a genuine token of somebody who is no tenant.
	ErrNoTenant = errors.New("identity: token names no tenant")
	// ErrNoKeys is a token that cannot be verified, since the issuer's keys cannot be read.
	ErrNoKeys = errors.New("identity: the issuer's keys cannot be read")
)

// An Identifier knows the tenants by the digests of their API keys, and the issuer of tokens by its public keys. It is safe for
// concurrent use.
type Identifier struct {
	header    string // canonical; "" = there are no API keys
	shown     string // as the configuration spells it
	anonymous config.Anonymous
	tenants   map[[sha256.Size]byte]tenant
	tokens    *tokens // nil = none are read
}

type tenant struct {
	digest [sha256.Size]byte
	name   string
}

// New returns an Identifier of c's tenants. keys are those of c's issuer; they may be nil where c reads no tokens.
func New(c *config.Config, keys *Keys) (*Identifier, error) {
	id := &Identifier{
		header: http.CanonicalHeaderKey(c.Identity.Header), shown: c.Identity.Header, anonymous: c.Identity.Anonymous,
		tenants: make(map[[sha256.Size]byte]tenant),
	}
	for _, t := range c.Tenants {
		for _, digest := range t.Keys {
			id.tenants[digest] = tenant{digest: digest, name: t.Name}
		}
	}
	if c.Identity.JWT != nil {
		if keys == nil {
			return nil, ErrNoKeys
		}
		id.tokens = newTokens(c, keys)
	}
	return id, nil
}

// Header returns the name of the header that bears the API key, as the configuration spells it; "" = there are no API keys.
func (id *Identifier) Header() string { return id.shown }

// Identify returns who h shows to be calling. An API key is looked at first, then a token; the first that is there decides, and what
// is there and not believed is an error. Without either it is [policy.Anonymous], or an error. Two keys in one request are an unknown
// one. It may wait for a moment for the issuer's keys, at most until ctx ends.
func (id *Identifier) Identify(ctx context.Context, h http.Header, now time.Time) (policy.Caller, error) {
	if values := h[id.header]; id.header != "" && len(values) > 0 && (len(values) > 1 || values[0] != "") {
		if len(values) > 1 {
			return policy.Caller{}, ErrUnknownKey
		}
		name, err := id.lookup(values[0])
		return policy.Caller{Tenant: name}, err
	}
	if id.tokens != nil {
		if raw, found, err := id.tokens.bearer(h); err != nil {
			return policy.Caller{}, err
		} else if found {
			return id.tokens.caller(ctx, raw, now)
		}
	}
	if id.anonymous == config.Share {
		return policy.Caller{Tenant: policy.Anonymous}, nil
	}
	return policy.Caller{}, ErrNoKey
}

// lookup finds the tenant by the digest of its key. What the time of the map's lookup tells is about digests of the caller's own
// making, from which no key can be approached; the digests themselves are compared in constant time.
func (id *Identifier) lookup(key string) (string, error) {
	var buf [128]byte // for a key of usual length nothing is allocated
	digest := sha256.Sum256(append(buf[:0], key...))
	t, found := id.tenants[digest]
	if subtle.ConstantTimeCompare(t.digest[:], digest[:]) != 1 || !found {
		return "", ErrUnknownKey
	}
	return t.name, nil
}

// Challenges are the values of WWW-Authenticate for a request that was not believed because of why.
func (id *Identifier) Challenges(why error) []string {
	var out []string
	if id.header != "" {
		out = append(out, `APIKey realm="headgate", header="`+id.shown+`"`)
	}
	if id.tokens != nil {
		bearer := `Bearer realm="headgate"`
		var te *TokenError
		if errors.As(why, &te) {
			bearer += `, error="invalid_token", error_description="` + te.Reason + `"`
		}
		out = append(out, bearer)
	}
	return out
}

// Detail tells the caller what is wanted, or what is wrong with what it sent, which it does not repeat.
func (id *Identifier) Detail(why error) string {
	var te *TokenError
	switch {
	case errors.As(why, &te):
		return "The token in the header " + id.tokens.shown + " is not believed: " + te.Reason + "."
	case errors.Is(why, ErrUnknownKey):
		return "The API key in the header " + id.shown + " is not known."
	case id.tokens == nil:
		return "An API key is required. Send it in the header " + id.shown + "."
	case id.header == "":
		return "A token is required. Send it as Bearer in the header " + id.tokens.shown + "."
	}
	return "An API key or a token is required. Send the key in the header " + id.shown + ", or the token as Bearer in the header " + id.tokens.shown + "."
}
