package identity_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/identity"
	"github.com/headgate/headgate/cmd/headgate/internal/policy"
)

const (
	issuer   = "https://idp.example.com/"
	audience = "my-api"
)

// claims are those of a token that is believed at now, with some of them replaced; nil takes one away.
func claims(now time.Time, replaced map[string]any) map[string]any {
	out := map[string]any{
		"iss": issuer, "aud": audience, "exp": now.Add(time.Minute).Unix(), "nbf": now.Unix(), "iat": now.Unix(), "sub": "u1", "org": "acme",
	}
	for name, value := range replaced {
		if out[name] = value; value == nil {
			delete(out, name)
		}
	}
	return out
}

// sign makes a token.
func sign(t *testing.T, algorithm jose.SignatureAlgorithm, key any, id string, payload any) string {
	t.Helper()
	o := new(jose.SignerOptions).WithType("JWT")
	if id != "" {
		o = o.WithHeader("kid", id)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, o)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := jwt.Signed(signer).Claims(payload).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// public is a key as an issuer shows it.
func public(key crypto.Signer, id, algorithm string) jose.JSONWebKey {
	return jose.JSONWebKey{Key: key.Public(), KeyID: id, Algorithm: algorithm, Use: "sig"}
}

func rsaKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func ecKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// tokenConfig is a configuration whose identity has this jwt section, with SOURCE replaced by where the keys are.
func tokenConfig(t *testing.T, source, more string) *config.Config {
	t.Helper()
	c, err := config.Parse("test", []byte(`
identity:
  jwt: {`+source+`, issuer: "`+issuer+`", audience: [other, `+audience+`], tenant_claim: org, `+more+`}
plans: {free: {limits: ["10/s"]}, pro: {limits: ["100/s"]}}
tenants: [{name: acme, plan: free}]
routes: [{path: /, upstream: "http://127.0.0.1:1", limits: ["1/s"]}]`))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// identify asks who bears a token.
func identify(t *testing.T, id *identity.Identifier, token string, now time.Time) (policy.Caller, error) {
	t.Helper()
	caller, err := id.Identify(t.Context(), http.Header{"Authorization": {"Bearer " + token}}, now)
	if err != nil && len(token) > 20 && strings.Contains(err.Error(), token) {
		t.Errorf("error %q repeats the token", err)
	}
	return caller, err
}

// reason is why a token was not believed, "" if that is not what err says.
func reason(err error) string {
	var te *identity.TokenError
	if errors.As(err, &te) && errors.Is(err, identity.ErrToken) {
		return te.Reason
	}
	return ""
}

func TestClaims(t *testing.T) {
	key, now := ecKey(t), time.Now()
	is := newIssuer(t, public(key, "k1", "ES256"))
	id := is.identifier(t, "leeway: 10s, plan_claim: plan")
	unix := func(d time.Duration) int64 { return now.Add(d).Unix() }
	tests := []struct {
		name     string
		replaced map[string]any
		want     policy.Caller
		err      error
		reason   string
	}{
		{"right", nil, policy.Caller{Tenant: "acme"}, nil, ""},
		{"one of several audiences", map[string]any{"aud": []string{"x", audience}}, policy.Caller{Tenant: "acme"}, nil, ""},
		{"expired within the leeway", map[string]any{"exp": unix(-5 * time.Second)}, policy.Caller{Tenant: "acme"}, nil, ""},
		{"begins within the leeway", map[string]any{"nbf": unix(5 * time.Second), "iat": unix(5 * time.Second)}, policy.Caller{Tenant: "acme"}, nil, ""},
		{"expired", map[string]any{"exp": unix(-20 * time.Second)}, policy.Caller{}, identity.ErrToken, "it has expired"},
		{"never expires", map[string]any{"exp": nil}, policy.Caller{}, identity.ErrToken, "it has no exp"},
		{"not before", map[string]any{"nbf": unix(20 * time.Second)}, policy.Caller{}, identity.ErrToken, "it is not valid yet"},
		{"issued in the future", map[string]any{"iat": unix(20 * time.Second)}, policy.Caller{}, identity.ErrToken, "it is not valid yet"},
		{"another audience", map[string]any{"aud": "their-api"}, policy.Caller{}, identity.ErrToken, "it is for another audience"},
		{"no audience", map[string]any{"aud": nil}, policy.Caller{}, identity.ErrToken, "it is for another audience"},
		{"another issuer", map[string]any{"iss": "https://idp.example.com"}, policy.Caller{}, identity.ErrToken, "it is of another issuer"},
		{"no issuer", map[string]any{"iss": nil}, policy.Caller{}, identity.ErrToken, "it is of another issuer"},
		{"claims of a wrong type", map[string]any{"exp": "tomorrow"}, policy.Caller{}, identity.ErrToken, "its signature is not that of its issuer"},
		{"listed: the file's plan", map[string]any{"plan": "pro"}, policy.Caller{Tenant: "acme"}, nil, ""},
		{"not listed", map[string]any{"org": "new", "plan": "pro"}, policy.Caller{Tenant: "new", Plan: "pro"}, nil, ""},
		{"not listed, no plan", map[string]any{"org": "new"}, policy.Caller{}, identity.ErrNoTenant, ""},
		{"not listed, unknown plan", map[string]any{"org": "new", "plan": "gold"}, policy.Caller{}, identity.ErrNoTenant, ""},
		{"no tenant", map[string]any{"org": nil, "plan": "pro"}, policy.Caller{}, identity.ErrNoTenant, ""},
		{"empty tenant", map[string]any{"org": "", "plan": "pro"}, policy.Caller{}, identity.ErrNoTenant, ""},
		{"a tenant that is no text", map[string]any{"org": []string{"acme"}, "plan": "pro"}, policy.Caller{}, identity.ErrNoTenant, ""},
	}
	for _, tt := range tests {
		caller, err := identify(t, id, sign(t, jose.ES256, key, "k1", claims(now, tt.replaced)), now)
		if caller != tt.want || !errors.Is(err, tt.err) || reason(err) != tt.reason {
			t.Errorf("%s: %+v, %v; want %+v, %v %s", tt.name, caller, err, tt.want, tt.err, tt.reason)
		}
	}
}

// The name of a tenant that the file could not list is a digest: not the anonymous one, not another's, of bounded length, without
// what separates the parts of a key.
func TestClaimedNames(t *testing.T) {
	key, now := ecKey(t), time.Now()
	id := newIssuer(t, public(key, "", "")).identifier(t, "plan_claim: plan")
	seen := map[string]bool{"acme": true, policy.Anonymous: true}
	for _, org := range []string{policy.Anonymous, "a|b", "user@example.com", "auth0|1", " acme", "Acme", strings.Repeat("n", 65), strings.Repeat("n", 4000), "~x"} {
		caller, err := identify(t, id, sign(t, jose.ES256, key, "", claims(now, map[string]any{"org": org, "plan": "free"})), now)
		if err != nil || seen[caller.Tenant] || strings.ContainsAny(caller.Tenant, "|@") || len(caller.Tenant) > 64 {
			t.Errorf("%.20q: %+v, %v", org, caller, err)
		}
		seen[caller.Tenant] = true
	}
}

func TestSignatures(t *testing.T) {
	rsa1, rsa2, ec, now := rsaKey(t), rsaKey(t), ecKey(t), time.Now()
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	secret := make([]byte, 32)
	is := newIssuer(t, public(rsa1, "rsa", ""), public(rsa2, "restricted", "RS512"), public(ec, "ec", "ES256"), public(ed, "ed", ""), public(short, "short", ""),
		jose.JSONWebKey{Key: secret, KeyID: "oct"}, jose.JSONWebKey{Key: rsa2.Public(), KeyID: "enc", Use: "enc"})
	id := is.identifier(t, "algorithms: [RS256, RS512, ES256, EdDSA]")
	payload := claims(now, nil)
	good := sign(t, jose.RS256, rsa1, "rsa", payload)
	parts := strings.Split(good, ".")
	none := func(alg string) string {
		return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"`+alg+`","kid":"rsa","typ":"JWT"}`)) + "." + parts[1] + "."
	}
	other := strings.Split(sign(t, jose.RS256, rsa1, "rsa", claims(now, map[string]any{"org": "globex"})), ".")
	der, err := json.Marshal(public(rsa1, "rsa", ""))
	if err != nil {
		t.Fatal(err)
	}
	const notJWT, badKey, badSignature = "it is no JWT with an algorithm that is accepted here", "its issuer has no such key", "its signature is not that of its issuer"
	for name, tt := range map[string]struct{ token, reason string }{
		"RSA":                                 {good, ""},
		"EC":                                  {sign(t, jose.ES256, ec, "ec", payload), ""},
		"Ed25519":                             {sign(t, jose.EdDSA, ed, "ed", payload), ""},
		"without a key's id":                  {sign(t, jose.ES256, ec, "", payload), ""},
		"none":                                {none("none"), notJWT},
		"None":                                {none("None"), notJWT},
		"no signature":                        {none("RS256"), badSignature},
		"HMAC with the public key":            {sign(t, jose.HS256, der, "rsa", payload), notJWT},
		"HMAC with a secret of the set":       {sign(t, jose.HS256, secret, "oct", payload), notJWT},
		"an algorithm that is not asked for":  {sign(t, jose.PS256, rsa1, "rsa", payload), notJWT},
		"a key restricted to another":         {sign(t, jose.RS256, rsa2, "restricted", payload), badKey},
		"a key for encryption":                {sign(t, jose.RS256, rsa2, "enc", payload), badKey},
		"a short key":                         {sign(t, jose.RS256, short, "short", payload), badKey},
		"an EC signature under an RSA key":    {sign(t, jose.ES256, ec, "rsa", payload), badKey},
		"somebody else's key":                 {sign(t, jose.RS256, rsa2, "rsa", payload), badSignature},
		"somebody else's key without an id":   {sign(t, jose.ES256, ecKey(t), "", payload), badSignature},
		"other claims under a signature":      {parts[0] + "." + other[1] + "." + parts[2], badSignature},
		"a token within a token":              {good + "." + parts[1], notJWT},
		"not a token":                         {"acme", notJWT},
		"nothing":                             {"", notJWT},
		"a token that is too long to look at": {strings.Repeat("a", 20_000), "it is too long"},
	} {
		_, err := identify(t, id, tt.token, now)
		if tt.reason == "" && err != nil || reason(err) != tt.reason {
			t.Errorf("%s: %v, want %q", name, err, tt.reason)
		}
	}
}

// An API key is looked at first; what is there and not believed is never taken for something else.
func TestOrderOfSources(t *testing.T) {
	key, now := ecKey(t), time.Now()
	is := newIssuer(t, public(key, "", ""))
	c := load(t, `anonymous: share, jwt: {jwks_url: "`+is.url()+`", issuer: "`+issuer+`", audience: `+audience+`, tenant_claim: org}`)
	id, err := identity.New(c, is.keys(t, c))
	if err != nil {
		t.Fatal(err)
	}
	token := "Bearer " + sign(t, jose.ES256, key, "", claims(now, nil))
	for name, tt := range map[string]struct {
		header http.Header
		tenant string
		err    error
	}{
		"nothing":               {http.Header{}, policy.Anonymous, nil},
		"a token":               {http.Header{"Authorization": {token}}, "acme", nil},
		"lower case":            {http.Header{"Authorization": {"bearer" + token[6:]}}, "acme", nil},
		"a key":                 {http.Header{"X-Api-Key": {"other"}}, "globex", nil},
		"a key and a token":     {http.Header{"X-Api-Key": {"other"}, "Authorization": {token}}, "globex", nil},
		"a bad key and a token": {http.Header{"X-Api-Key": {"bad"}, "Authorization": {token}}, "", identity.ErrUnknownKey},
		"a bad token":           {http.Header{"Authorization": {"Bearer x"}}, "", identity.ErrToken},
		"two tokens":            {http.Header{"Authorization": {token, token}}, "", identity.ErrToken},
		"two credentials":       {http.Header{"Authorization": {"Basic eDp5", token}}, "", identity.ErrToken},
		"of another scheme":     {http.Header{"Authorization": {"Basic eDp5"}}, policy.Anonymous, nil},
		"their own word":        {http.Header{"X-Tenant": {"acme"}, "X-Headgate-Tenant": {"acme"}, "Org": {"acme"}}, policy.Anonymous, nil},
	} {
		caller, err := id.Identify(t.Context(), tt.header, now)
		if caller.Tenant != tt.tenant || !errors.Is(err, tt.err) {
			t.Errorf("%s: %+v, %v; want %q, %v", name, caller, err, tt.tenant, tt.err)
		}
	}
	if got := strings.Join(id.Challenges(identity.ErrNoKey), ", "); got != `APIKey realm="headgate", header="X-API-Key", Bearer realm="headgate"` {
		t.Errorf("challenges %s", got)
	}
	_, err = identify(t, id, "x", now)
	if got := id.Challenges(err)[1]; !strings.HasPrefix(got, `Bearer realm="headgate", error="invalid_token", error_description="it is no JWT`) {
		t.Errorf("challenge %s", got)
	}
}
