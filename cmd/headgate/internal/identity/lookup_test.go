package identity_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/gatetest"
	"github.com/headgate/headgate/cmd/headgate/internal/identity"
)

// newKeyed returns an Identifier with one tenant, and the header of a request of its.
func newKeyed(tb testing.TB) (*identity.Identifier, http.Header) {
	tb.Helper()
	key := "hg_" + strings.Repeat("k", 43) // as long as those of headgate keygen
	c, err := config.Parse("test", []byte(`
plans: {free: {limits: ["10/s"]}}
tenants: [{name: acme, plan: free, api_key_sha256: "`+gatetest.Digest(key)+`"}]
routes: [{path: /, upstream: "http://127.0.0.1:1"}]`))
	if err != nil {
		tb.Fatal(err)
	}
	id, err := identity.New(c, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return id, http.Header{"X-Api-Key": {key}}
}

func BenchmarkIdentifyKey(b *testing.B) {
	id, h := newKeyed(b)
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := id.Identify(b.Context(), h, now); err != nil {
			b.Fatal(err)
		}
	}
}

// Who calls with an API key is found out without allocating.
func TestIdentifyKeyAllocates(t *testing.T) {
	id, h := newKeyed(t)
	now, ctx := time.Now(), t.Context()
	var tenant string
	allocs := testing.AllocsPerRun(100, func() {
		caller, err := id.Identify(ctx, h, now)
		if err != nil {
			t.Error(err)
		}
		tenant = caller.Tenant
	})
	if allocs != 0 || tenant != "acme" {
		t.Errorf("%v allocations for %q, want none for acme", allocs, tenant)
	}
}
