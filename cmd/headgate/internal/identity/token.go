package identity

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/policy"
)

// maxToken bounds what is looked at, in bytes.
const maxToken = 16 << 10

// A TokenError says why a token is not believed. It matches [ErrToken].
type TokenError struct {
	// Reason is one of a few fixed texts: it holds nothing of the token.
	Reason string
}

// Error returns the sentinel's text and the reason.
func (e *TokenError) Error() string { return ErrToken.Error() + ": " + e.Reason }

// Unwrap returns ErrToken.
func (e *TokenError) Unwrap() error { return ErrToken }

func disbelieve(reason string) error { return &TokenError{Reason: reason} }

// tokens verifies tokens of one issuer.
type tokens struct {
	header     string // canonical
	shown      string
	algorithms []jose.SignatureAlgorithm
	keys       *Keys
	expected   jwt.Expected
	leeway     time.Duration
	tenant     string // the name of the claim
	plan       string // the name of the claim; "" = none
	tenants    map[string]bool
	plans      map[string]bool
}

func newTokens(c *config.Config, keys *Keys) *tokens {
	j := c.Identity.JWT
	t := &tokens{
		header: http.CanonicalHeaderKey(j.Header), shown: j.Header, keys: keys, leeway: j.Leeway, tenant: j.TenantClaim, plan: j.PlanClaim,
		expected: jwt.Expected{Issuer: j.Issuer, AnyAudience: jwt.Audience(j.Audience)},
		tenants:  make(map[string]bool, len(c.Tenants)), plans: make(map[string]bool, len(c.Plans)),
	}
	for _, a := range j.Algorithms {
		t.algorithms = append(t.algorithms, jose.SignatureAlgorithm(a))
	}
	for _, tenant := range c.Tenants {
		t.tenants[tenant.Name] = true
	}
	for _, plan := range c.Plans {
		t.plans[plan.Name] = true
	}
	return t
}

// bearer returns the token that h bears. What is no Bearer is somebody else's business.
func (t *tokens) bearer(h http.Header) (raw string, found bool, err error) {
	values := h[t.header]
	for _, value := range values {
		scheme, rest, _ := strings.Cut(value, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			continue
		}
		if len(values) > 1 {
			return "", false, disbelieve("there are several credentials")
		}
		return strings.Trim(rest, " "), true, nil
	}
	return "", false, nil
}

// caller verifies a token and returns who it is about.
func (t *tokens) caller(ctx context.Context, raw string, now time.Time) (policy.Caller, error) {
	if len(raw) > maxToken {
		return policy.Caller{}, disbelieve("it is too long")
	}
	token, err := jwt.ParseSigned(raw, t.algorithms)
	if err != nil || len(token.Headers) != 1 {
		return policy.Caller{}, disbelieve("it is no JWT with an algorithm that is accepted here")
	}
	var standard jwt.Claims
	own := make(map[string]any)
	if err := t.verify(ctx, token, now, &standard, &own); err != nil {
		return policy.Caller{}, err
	}
	if err := t.validate(standard, now); err != nil {
		return policy.Caller{}, err
	}
	return t.name(own)
}

// verify reads the claims with the first fitting key that made the signature.
func (t *tokens) verify(ctx context.Context, token *jwt.JSONWebToken, now time.Time, claims ...any) error {
	head := token.Headers[0]
	fitting, err := t.keys.find(ctx, head.KeyID, head.Algorithm, now)
	if err != nil {
		return err
	}
	if len(fitting) == 0 {
		return disbelieve("its issuer has no such key")
	}
	for _, key := range fitting {
		if token.Claims(key, claims...) == nil {
			return nil
		}
	}
	return disbelieve("its signature is not that of its issuer")
}

// validate checks when and for whom the token is. One that never expires is not believed.
func (t *tokens) validate(claims jwt.Claims, now time.Time) error {
	if claims.Expiry == nil {
		return disbelieve("it has no exp")
	}
	switch err := claims.ValidateWithLeeway(t.expected.WithTime(now), t.leeway); {
	case err == nil:
		return nil
	case errors.Is(err, jwt.ErrInvalidIssuer):
		return disbelieve("it is of another issuer")
	case errors.Is(err, jwt.ErrInvalidAudience):
		return disbelieve("it is for another audience")
	case errors.Is(err, jwt.ErrExpired):
		return disbelieve("it has expired")
	case errors.Is(err, jwt.ErrNotValidYet), errors.Is(err, jwt.ErrIssuedInTheFuture):
		return disbelieve("it is not valid yet")
	}
	return disbelieve("its claims are not right")
}

// name finds the tenant in the claims of a genuine token.
func (t *tokens) name(claims map[string]any) (policy.Caller, error) {
	tenant, _ := claims[t.tenant].(string)
	switch {
	case tenant == "":
		return policy.Caller{}, ErrNoTenant
	case t.tenants[tenant]:
		return policy.Caller{Tenant: tenant}, nil
	case t.plan == "":
		return policy.Caller{}, ErrNoTenant
	}
	plan, _ := claims[t.plan].(string)
	if !t.plans[plan] {
		return policy.Caller{}, ErrNoTenant
	}
	return policy.Caller{Tenant: claimed(tenant), Plan: plan}, nil
}

// claimed is the name of a tenant that the file does not list: its own where a file could have it, otherwise a digest of it, which begins
// as no name of a file does.
func claimed(tenant string) string {
	if config.ValidName(tenant) {
		return tenant
	}
	sum := sha256.Sum256([]byte(tenant))
	return "~" + base64.RawURLEncoding.EncodeToString(sum[:])
}
