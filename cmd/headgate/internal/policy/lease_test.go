package policy_test

import (
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/policy"
)

func TestLeases(t *testing.T) {
	c, err := config.Parse("test", []byte(`
store: {redis: {url: "redis://127.0.0.1"}}
identity: {anonymous: share, anonymous_plan: free}
plans: {free: {limits: [{limit: "10/s", lease: true}, "1000/day"]}}
routes:
  - {path: /, upstream: "http://127.0.0.1:1", on_store_error: open, limits: ["5/s"], total: [{name: all, limit: "9/s", lease: true}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	leases, p := policy.Leases(c), policy.New(c)
	want := map[string]bool{"free/s": true, "free/day": false, "/ tenant/s": false, "all": true}
	charges := p.Charges(p.Routes()[0], policy.Anonymous)
	for _, charge := range charges {
		if got := leases(charge); got != want[charge.Limit.Name] {
			t.Errorf("%s of %s leased %v, want %v", charge.Limit.Name, charge.Key, got, want[charge.Limit.Name])
		}
		charge.Key = "somebody's own"
		if leases(charge) {
			t.Errorf("%s of another's key is leased", charge.Limit.Name)
		}
	}
	if len(charges) != len(want) {
		t.Errorf("%d charges, want %d", len(charges), len(want))
	}
	if policy.Leases(new(config.Config))(headgate.Charge{Key: "plan|a|"}) {
		t.Error("a configuration without leases leases")
	}
}
