package admin_test

import (
	"crypto/ed25519"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// The Authorization of the request that a proxy asks about is its caller's, also where the API has a token of its own.
func TestForwardAuthTakesTokens(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: public, KeyID: "1", Algorithm: "EdDSA", Use: "sig"}}})
	if err != nil {
		t.Fatal(err)
	}
	jwks := filepath.Join(t.TempDir(), "jwks.json")
	writeFile(t, jwks, string(keys))
	s := start(t, strings.Replace(file, "plans:", "api: {token_sha256: TOKEN}\nidentity: {jwt: {jwks_file: \""+jwks+
		"\", issuer: idp, audience: api, algorithms: [EdDSA], tenant_claim: tenant}}\nplans:", 1), nil)

	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: private, KeyID: "1"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	token := func(audience string) string {
		raw, err := jwt.Signed(signer).Claims(jwt.Claims{
			Issuer: "idp", Audience: jwt.Audience{audience}, Expiry: jwt.NewNumericDate(time.Now().Add(time.Hour)),
		}).Claims(map[string]any{"tenant": "globex"}).Serialize()
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	ask := func(raw string) *answer {
		return s.send(t, "GET", "/v1/forward-auth", "", traefik("GET", "/api"), header("Authorization", "Bearer "+raw))
	}
	if a := ask(token("api")); a.StatusCode != 200 || a.Header.Get("X-Headgate-Tenant") != "globex" {
		t.Errorf("first: %d %v %s", a.StatusCode, a.Header, a.body)
	}
	if a := ask(token("api")); a.StatusCode != 429 {
		t.Errorf("second of one: %d %s", a.StatusCode, a.body)
	}
	wantProblem(t, ask(token("another")), 401)
	wantProblem(t, ask("secret-token"), 401)
}
