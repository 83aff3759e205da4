package identity_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/gatetest"
	"github.com/headgate/headgate/cmd/headgate/internal/identity"
	"github.com/headgate/headgate/cmd/headgate/internal/policy"
)

func load(t *testing.T, id string) *config.Config {
	t.Helper()
	c, err := config.Parse("test", []byte(`
identity: {`+id+`}
plans: {free: {limits: ["10/s"]}}
tenants:
  - {name: acme, plan: free, api_key_sha256: ["`+gatetest.Digest("old")+`", "`+gatetest.Digest("new")+`"]}
  - {name: globex, plan: free, api_key_sha256: "`+gatetest.Digest("other")+`"}
routes: [{path: /, upstream: "http://127.0.0.1:1", limits: ["1/s"]}]`))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestIdentify(t *testing.T) {
	tests := []struct {
		anonymous string
		keys      []string
		tenant    string
		err       error
	}{
		{"deny", []string{"old"}, "acme", nil},
		{"deny", []string{"new"}, "acme", nil},
		{"share", []string{"other"}, "globex", nil},
		{"deny", nil, "", identity.ErrNoKey},
		{"deny", []string{""}, "", identity.ErrNoKey},
		{"share", nil, policy.Anonymous, nil},
		{"share", []string{""}, policy.Anonymous, nil},
		{"share", []string{"wrong"}, "", identity.ErrUnknownKey},
		{"deny", []string{"Old"}, "", identity.ErrUnknownKey},
		{"deny", []string{" old"}, "", identity.ErrUnknownKey},
		{"share", []string{"old", "other"}, "", identity.ErrUnknownKey},
		{"share", []string{"acme"}, "", identity.ErrUnknownKey},
		{"share", []string{policy.Anonymous}, "", identity.ErrUnknownKey},
	}
	for _, tt := range tests {
		id, err := identity.New(load(t, "anonymous: "+tt.anonymous+", api_key: {header: x-api-key}"), nil)
		if err != nil {
			t.Fatal(err)
		}
		h := make(http.Header)
		for _, key := range tt.keys {
			h.Add("X-API-KEY", key)
		}
		caller, err := id.Identify(t.Context(), h, time.Now())
		if caller != (policy.Caller{Tenant: tt.tenant}) || !errors.Is(err, tt.err) {
			t.Errorf("%s %q: %+v, %v; want %q, %v", tt.anonymous, tt.keys, caller, err, tt.tenant, tt.err)
		}
		if err != nil && len(tt.keys) == 1 && tt.keys[0] != "" && strings.Contains(err.Error(), tt.keys[0]) {
			t.Errorf("error %q repeats the key", err)
		}
	}
}

func TestAddresses(t *testing.T) {
	a, err := identity.NewAddresses(load(t, `trusted_proxies: [10.0.0.0/8, "2001:db8::/32"]`))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		peer, forwarded string
		trusted         bool
		client          string
	}{
		{"192.0.2.1:5000", "203.0.113.9", false, "192.0.2.1"},
		{"10.1.1.1:5000", "203.0.113.9", true, "203.0.113.9"},
		{"10.1.1.1:5000", "198.51.100.1, 203.0.113.9, 10.2.2.2", true, "203.0.113.9"},
		{"10.1.1.1:5000", "", true, "10.1.1.1"},
		{"[::ffff:10.1.1.1]:5000", "203.0.113.9", true, "203.0.113.9"},
		{"[2001:db8::1]:5000", "2001:470::5", true, "2001:470::5"},
		{"@", "203.0.113.9", false, ""},
	}
	for _, tt := range tests {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = tt.peer
		if tt.forwarded != "" {
			r.Header.Set("X-Forwarded-For", tt.forwarded)
		}
		if got := a.TrustsPeer(r); got != tt.trusted {
			t.Errorf("%s: trusted %v, want %v", tt.peer, got, tt.trusted)
		}
		if got := a.Client(r); got != tt.client {
			t.Errorf("%s for %s: client %s, want %s", tt.peer, tt.forwarded, got, tt.client)
		}
	}
}
