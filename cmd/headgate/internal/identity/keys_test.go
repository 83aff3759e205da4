package identity_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/gatetest"
	"github.com/headgate/headgate/cmd/headgate/internal/identity"
)

// An issuer shows its public keys over HTTP, and counts how often it is asked.
type issuerServer struct {
	server *httptest.Server

	mu     sync.Mutex
	set    jose.JSONWebKeySet
	status int    // of answers; 0 = 200
	body   string // in place of the set; "" = the set
	asked  int
	hang   chan struct{} // answers wait for its end; nil = they do not
}

func newIssuer(t *testing.T, keys ...jose.JSONWebKey) *issuerServer {
	t.Helper()
	is := &issuerServer{set: jose.JSONWebKeySet{Keys: keys}}
	is.server = httptest.NewServer(is)
	t.Cleanup(is.server.Close)
	return is
}

func (is *issuerServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	is.mu.Lock()
	is.asked++
	status, body, hang := is.status, is.body, is.hang
	if body == "" {
		text, _ := json.Marshal(is.set) // public keys always have a JSON form
		body = string(text)
	}
	is.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-r.Context().Done():
			return
		}
	}
	if status != 0 {
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
	}
	_, _ = w.Write([]byte(body)) // who went away needs no keys
}

func (is *issuerServer) url() string { return is.server.URL + "/jwks.json" }

// show changes what is answered.
func (is *issuerServer) show(how func(*issuerServer)) {
	is.mu.Lock()
	defer is.mu.Unlock()
	how(is)
}

func (is *issuerServer) times() int {
	is.mu.Lock()
	defer is.mu.Unlock()
	return is.asked
}

// keys returns the keys of c's issuer, closed with the test.
func (is *issuerServer) keys(t *testing.T, c *config.Config) *identity.Keys {
	t.Helper()
	k, err := identity.NewKeys(c.Identity.JWT, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k
}

// identifier believes the issuer. more is said about it in the configuration.
func (is *issuerServer) identifier(t *testing.T, more string) *identity.Identifier {
	t.Helper()
	id, _ := is.identifierAndKeys(t, more)
	return id
}

func (is *issuerServer) identifierAndKeys(t *testing.T, more string) (*identity.Identifier, *identity.Keys) {
	t.Helper()
	c := tokenConfig(t, `jwks_url: "`+is.url()+`"`, more)
	keys := is.keys(t, c)
	id, err := identity.New(c, keys)
	if err != nil {
		t.Fatal(err)
	}
	return id, keys
}

// A bearer asks with a token of a key at an instant.
func bearer(t *testing.T, id *identity.Identifier, token string) func(time.Time) string {
	return func(now time.Time) string {
		t.Helper()
		_, err := identify(t, id, token, now)
		switch {
		case err == nil:
			return "believed"
		case errors.Is(err, identity.ErrNoKeys):
			return "no keys"
		}
		return reason(err)
	}
}

// lasting are claims that outlast every test.
func lasting(now time.Time) map[string]any {
	return claims(now, map[string]any{"exp": now.Add(100 * time.Hour).Unix()})
}

const noSuchKey = "its issuer has no such key"

// A new key is known with its first token; one that was withdrawn is believed until the keys are read again, and no longer.
func TestRotation(t *testing.T) {
	old, next, start := ecKey(t), ecKey(t), time.Now()
	is := newIssuer(t, public(old, "old", ""))
	id := is.identifier(t, "refresh: 5m")
	oldToken := bearer(t, id, sign(t, jose.ES256, old, "old", lasting(start)))
	nextToken := bearer(t, id, sign(t, jose.ES256, next, "next", lasting(start)))
	at := func(d time.Duration) time.Time { return start.Add(d) }

	if got := oldToken(at(0)); got != "believed" || is.times() != 1 {
		t.Fatalf("%s after %d questions, want it believed after one", got, is.times())
	}
	for range 10 {
		oldToken(at(time.Minute))
	}
	if is.times() != 1 {
		t.Errorf("asked %d times while the keys were fresh", is.times())
	}
	is.show(func(is *issuerServer) { is.set.Keys = append(is.set.Keys, public(next, "next", "")) })
	if got := nextToken(at(2 * time.Minute)); got != "believed" || is.times() != 2 {
		t.Errorf("the new key: %s after %d questions", got, is.times())
	}
	is.show(func(is *issuerServer) { is.set.Keys = is.set.Keys[1:] })
	if got := oldToken(at(3 * time.Minute)); got != "believed" {
		t.Errorf("withdrawn, within the refresh: %s", got)
	}
	if got := oldToken(at(15 * time.Minute)); got != noSuchKey {
		t.Errorf("withdrawn, beyond the refresh: %s", got)
	}
	if got := nextToken(at(15 * time.Minute)); got != "believed" {
		t.Errorf("the other key: %s", got)
	}
}

// Keys past their refresh are read beside the requests, which go on with the old ones meanwhile.
func TestRefreshInTheBackground(t *testing.T) {
	old, start := ecKey(t), time.Now()
	is := newIssuer(t, public(old, "old", ""))
	id := is.identifier(t, "refresh: 5m")
	token := bearer(t, id, sign(t, jose.ES256, old, "old", lasting(start)))
	token(start)
	is.show(func(is *issuerServer) { is.hang = make(chan struct{}) })
	for range 10 {
		if got := token(start.Add(6 * time.Minute)); got != "believed" {
			t.Fatalf("while the keys are read: %s", got)
		}
	}
	is.show(func(is *issuerServer) { close(is.hang); is.hang, is.set.Keys = nil, nil })
	gatetest.Await(t, "two questions, not ten", func() bool { return is.times() == 2 })
}

// Tokens of keys that nobody has heard of do not make the gateway ask for each of them.
func TestUnknownKeysDoNotFloodTheIssuer(t *testing.T) {
	known, other, start := ecKey(t), ecKey(t), time.Now()
	is := newIssuer(t, public(known, "known", ""))
	id := is.identifier(t, "refresh: 5m")
	bearer(t, id, sign(t, jose.ES256, known, "known", lasting(start)))(start)
	flood := func(now time.Time) {
		t.Helper()
		for i := range 50 {
			token := sign(t, jose.ES256, other, strings.Repeat("x", i+1), lasting(start))
			if got := bearer(t, id, token)(now); got != noSuchKey {
				t.Fatalf("unknown key %d: %s", i, got)
			}
		}
	}
	flood(start.Add(time.Second))
	if n := is.times(); n != 1 {
		t.Errorf("asked %d times, want once: it has just been", n)
	}
	flood(start.Add(20 * time.Second))
	flood(start.Add(21 * time.Second))
	if n := is.times(); n != 2 {
		t.Errorf("asked %d times, want twice: at the start, and once in ten seconds", n)
	}
}

// An issuer that is away: the keys that are known are believed for an hour more; without any nobody can be believed, and as soon as it
// is back they can.
func TestIssuerAway(t *testing.T) {
	key, start := ecKey(t), time.Now()
	is := newIssuer(t, public(key, "k", ""))
	is.show(func(is *issuerServer) { is.status = http.StatusInternalServerError })
	id, keys := is.identifierAndKeys(t, "refresh: 5m")
	token := bearer(t, id, sign(t, jose.ES256, key, "k", lasting(start)))
	for range 5 {
		if got := token(start); got != "no keys" {
			t.Errorf("away from the start: %s", got)
		}
	}
	if is.times() != 1 || keys.Problem() == "" {
		t.Errorf("asked %d times within a second; problem %q", is.times(), keys.Problem())
	}
	is.show(func(is *issuerServer) { is.status = 0 })
	start = start.Add(2 * time.Second)
	if got := token(start); got != "believed" || keys.Problem() != "" {
		t.Errorf("back: %s, problem %q", got, keys.Problem())
	}
	for name, how := range map[string]func(*issuerServer){
		"an error":            func(is *issuerServer) { is.status = http.StatusServiceUnavailable },
		"a redirect":          func(is *issuerServer) { is.status = http.StatusFound },
		"no JSON":             func(is *issuerServer) { is.body = "<html>" },
		"no set":              func(is *issuerServer) { is.body = `{"error": "x"}` },
		"more than one reads": func(is *issuerServer) { is.body = `{"keys": ["` + strings.Repeat("x", 2<<20) + `"]}` },
	} {
		is.show(func(is *issuerServer) { is.status, is.body = 0, ""; how(is) })
		start = start.Add(20 * time.Minute) // too old not to be read again, and not too old to be believed
		if got := token(start); got != "believed" || keys.Problem() == "" {
			t.Errorf("%s: %s, problem %q", name, got, keys.Problem())
		}
		is.show(func(is *issuerServer) { is.status, is.body = 0, "" })
		start = start.Add(10 * time.Second)
		if got := token(start); got != "believed" {
			t.Errorf("after %s: %s", name, got)
		}
		gatetest.Await(t, "the keys", func() bool { return keys.Problem() == "" }) // nobody waits for them
	}
	is.show(func(is *issuerServer) { is.status = http.StatusServiceUnavailable })
	if got := token(start.Add(2 * time.Hour)); got != "no keys" {
		t.Errorf("away for hours: %s", got)
	}
}

// A set may hold keys of a kind that is not known; the others are used.
func TestForeignKeysInTheSet(t *testing.T) {
	key, now := ecKey(t), time.Now()
	own, err := json.Marshal(public(key, "k", ""))
	if err != nil {
		t.Fatal(err)
	}
	is := newIssuer(t)
	is.show(func(is *issuerServer) {
		is.body = `{"keys": [{"kty": "AKP", "kid": "q"}, {"kty": "RSA", "n": "!"}, 5, ` + string(own) + `]}`
	})
	if got := bearer(t, is.identifier(t, ""), sign(t, jose.ES256, key, "k", claims(now, nil)))(now); got != "believed" {
		t.Error(got)
	}
}

// Nobody waits for the issuer longer than he wants to, and Close waits for nobody.
func TestIssuerHangs(t *testing.T) {
	key, now := ecKey(t), time.Now()
	is := newIssuer(t, public(key, "k", ""))
	is.show(func(is *issuerServer) { is.hang = make(chan struct{}) })
	id, keys := is.identifierAndKeys(t, "refresh: 5m")
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	token := sign(t, jose.ES256, key, "k", claims(now, nil))
	go func() {
		_, err := id.Identify(ctx, http.Header{"Authorization": {"Bearer " + token}}, now)
		result <- err
	}()
	gatetest.Await(t, "a question", func() bool { return is.times() == 1 })
	cancel()
	if err := <-result; !errors.Is(err, identity.ErrNoKeys) {
		t.Errorf("%v, want ErrNoKeys", err)
	}
	keys.Close()
	if got := bearer(t, id, token)(now.Add(time.Hour)); got != "no keys" || is.times() != 1 {
		t.Errorf("closed: %s after %d questions", got, is.times())
	}
}

// An issuer that hangs: one wait finds that out, and after it nobody waits whose keys are believed all the same.
func TestIssuerHangsWithKeysKnown(t *testing.T) {
	key, start := ecKey(t), time.Now()
	is := newIssuer(t, public(key, "k", ""))
	id, keys := is.identifierAndKeys(t, "refresh: 5m")
	token := bearer(t, id, sign(t, jose.ES256, key, "k", lasting(start)))
	if got := token(start); got != "believed" {
		t.Fatal(got)
	}
	is.show(func(is *issuerServer) { is.status = http.StatusInternalServerError })
	start = start.Add(20 * time.Minute)
	if got := token(start); got != "believed" || keys.Problem() == "" {
		t.Fatalf("away: %s, problem %q", got, keys.Problem())
	}
	is.show(func(is *issuerServer) { is.hang = make(chan struct{}) })
	asked := is.times()
	for i := range 5 { // the question hangs, and would for seconds: an answer is there while it does
		if got := token(start.Add(time.Duration(2+i) * time.Second)); got != "believed" {
			t.Errorf("hanging: %s", got)
		}
	}
	gatetest.Await(t, "a question", func() bool { return is.times() == asked+1 })
	if keys.Problem() == "" {
		t.Error("no problem is reported while the issuer hangs")
	}
}

func TestKeysInAFile(t *testing.T) {
	old, next, start := ecKey(t), ecKey(t), time.Now()
	path := filepath.Join(t.TempDir(), "jwks.json")
	write := func(keys ...jose.JSONWebKey) {
		t.Helper()
		text, err := json.Marshal(jose.JSONWebKeySet{Keys: keys})
		if err == nil {
			err = os.WriteFile(path, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	c := tokenConfig(t, "jwks_file: "+path, "refresh: 1s")
	log := slog.New(slog.DiscardHandler)
	if _, err := identity.NewKeys(c.Identity.JWT, log); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("no file: %v, want its name", err)
	}
	write(public(old, "old", ""))
	keys, err := identity.NewKeys(c.Identity.JWT, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(keys.Close)
	if _, err := identity.New(c, nil); !errors.Is(err, identity.ErrNoKeys) {
		t.Errorf("no keys: %v", err)
	}
	id, err := identity.New(c, keys)
	if err != nil {
		t.Fatal(err)
	}
	oldToken := bearer(t, id, sign(t, jose.ES256, old, "old", lasting(start)))
	nextToken := bearer(t, id, sign(t, jose.ES256, next, "next", lasting(start)))
	if got := oldToken(start); got != "believed" {
		t.Error(got)
	}
	write(public(next, "next", ""))
	if got := nextToken(start.Add(2 * time.Minute)); got != "believed" {
		t.Errorf("the new key: %s", got)
	}
	if got := oldToken(start.Add(2 * time.Minute)); got != noSuchKey {
		t.Errorf("the old key: %s", got)
	}
}
