package policy_test

import (
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/policy"
)

func nested(tb testing.TB) *policy.Policy {
	tb.Helper()
	c, err := config.Parse("test", []byte(`
identity: {anonymous: share}
routes:
  - {path: /a, upstream: "http://127.0.0.1:1", limits: ["1/s"]}
  - {path: /a/b/.c, upstream: "http://127.0.0.1:1", limits: ["1/s"]}
  - {path: /d/e, upstream: "http://127.0.0.1:1", limits: ["1/s"]}`))
	if err != nil {
		tb.Fatal(err)
	}
	return policy.New(c)
}

// FuzzPlainPath holds that the short way for paths that can be read in one way only leads where reading them in all ways does.
func FuzzPlainPath(f *testing.F) {
	p := nested(f)
	for _, path := range []string{
		"", "/", "a", "/a", "/a/", "/a/b", "/a/b/.c", "/a/b/.c/", "/a/b/..", "/a/b/../x", "/a/b/.", "/a//b", "//a", "/a;x", "/a\\b", "/a%2fb", "/%61", "/d", "/d/",
		"/d/e", "/d/e/f?", "/d/e\x00", "/\xff", "/a/b.", "/a/b..", "/a/...",
	} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		got, gotErr := p.Route(path)
		want, wantErr := p.Weigh(path)
		if got != want || gotErr != wantErr {
			t.Fatalf("%q: %v, %v; read in all ways %v, %v", path, got, gotErr, want, wantErr)
		}
	})
}

// A request under a plan alone, on a path without anything special, is looked up without allocating.
func TestLookupAllocates(t *testing.T) {
	c, err := config.Parse("test", []byte(`
plans: {p: {limits: ["10/s", "1000/day"]}}
tenants: [{name: acme, plan: p, api_key_sha256: "0000000000000000000000000000000000000000000000000000000000000001"}]
routes: [{path: /api/v1, upstream: "http://127.0.0.1:1"}]`))
	if err != nil {
		t.Fatal(err)
	}
	p := policy.New(c)
	charges := 0
	allocs := testing.AllocsPerRun(100, func() {
		r, err := p.Route("/api/v1/users/42")
		if err != nil {
			t.Error(err)
			return
		}
		charges = len(p.ChargesFor(r, policy.Caller{Tenant: "acme"}))
	})
	if allocs != 0 || charges != 2 {
		t.Errorf("%v allocations for %d charges, want none for 2", allocs, charges)
	}
}

// What Charges returns is the caller's: to change it changes nobody else's.
func TestChargesAreTheCallers(t *testing.T) {
	p := compile(t, `
identity: {anonymous: share, anonymous_plan: p}
plans: {p: {limits: ["10/s"]}}
routes: [{path: /, upstream: "http://127.0.0.1:1"}]`)
	r := p.Routes()[0]
	p.Charges(r, policy.Anonymous)[0].Cost = 7
	p.Own(r, policy.Anonymous)[0].Cost = 7
	if c := p.ChargesFor(r, policy.Caller{Tenant: policy.Anonymous}); c[0].Cost != 1 {
		t.Errorf("cost %d, want the 1 of a request that nobody has changed", c[0].Cost)
	}
}
