package policy_test

import (
	"errors"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/policy"
)

const file = `
identity: {anonymous: share, anonymous_plan: free}
plans:
  free: {limits: ["10/s", "1000/day"]}
  pro: {limits: ["100/s"]}
tenants:
  - {name: acme, plan: pro, api_key_sha256: "0000000000000000000000000000000000000000000000000000000000000001"}
  - {name: globex, plan: free, api_key_sha256: "0000000000000000000000000000000000000000000000000000000000000002"}
routes:
  - {path: /partner/, upstream: "http://127.0.0.1:1", total: ["1000/s"], limits: ["50/s"], tenants: [acme]}
  - {path: /partner/free, upstream: "http://127.0.0.1:1", plan: false}
  - {path: /café, upstream: "http://127.0.0.1:1"}
  - {path: /, upstream: "http://127.0.0.1:1", limits: ["5/s"]}
`

func compile(t *testing.T, text string) *policy.Policy {
	t.Helper()
	c, err := config.Parse("test", []byte(strings.ReplaceAll(text, "plan: false}", `plan: false, total: ["9/s"]}`)))
	if err != nil {
		t.Fatal(err)
	}
	return policy.New(c)
}

func TestCharges(t *testing.T) {
	p := compile(t, file)
	tests := []struct{ path, tenant, want string }{
		{"/partner/x", "acme", "plan|acme|:pro/s route|acme|/partner:/partner tenant/s total||/partner:/partner total/s"},
		{"/partner/x", "globex", "plan|globex|:free/s plan|globex|:free/day route|globex|/partner:/partner tenant/s total||/partner:/partner total/s"},
		{"/partner/free", "acme", "total||/partner/free:/partner/free total/s"},
		{"/x", "acme", "plan|acme|:pro/s route|acme|/:/ tenant/s"},
		{"/x", policy.Anonymous, "plan|*|:free/s plan|*|:free/day route|*|/:/ tenant/s"},
	}
	for _, tt := range tests {
		r, err := p.Route(tt.path)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range p.Charges(r, tt.tenant) {
			if err := c.Validate(); err != nil || c.Cost != 1 {
				t.Errorf("%s %s: charge %+v: %v", tt.path, tt.tenant, c, err)
			}
			got = append(got, c.Key+":"+c.Limit.Name)
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%s %s: %s, want %s", tt.path, tt.tenant, s, tt.want)
		}
	}
}

// A tenant that is called like a part of another's key, or a path that looks like a tenant, has counters of its own.
func TestKeysAreUnambiguous(t *testing.T) {
	p := compile(t, `
plans: {p: {limits: ["10/s"]}}
tenants:
  - {name: a, plan: p, api_key_sha256: "0000000000000000000000000000000000000000000000000000000000000001"}
  - {name: a.b, plan: p, api_key_sha256: "0000000000000000000000000000000000000000000000000000000000000002"}
routes:
  - {path: "/", upstream: "http://127.0.0.1:1", limits: ["1/s"], total: ["1/s"]}
  - {path: "/a|/b", upstream: "http://127.0.0.1:1", limits: ["1/s"], total: ["1/s"]}
  - {path: "/a|", upstream: "http://127.0.0.1:1", limits: ["1/s"], total: ["1/s"]}
`)
	owner := make(map[string]string)
	for _, r := range p.Routes() {
		for _, tenant := range []string{"a", "a.b", policy.Anonymous} {
			for i, c := range p.Charges(r, tenant) {
				who := []string{"plan " + tenant, "route " + tenant + " on " + r.Path, "total of " + r.Path}
				if tenant == policy.Anonymous {
					who = who[1:]
				}
				if before, taken := owner[c.Key]; taken && before != who[i] {
					t.Errorf("key %q is that of %s and of %s", c.Key, before, who[i])
				}
				owner[c.Key] = who[i]
			}
		}
	}
}

func TestAdmits(t *testing.T) {
	p := compile(t, file)
	partner, root := p.Routes()[0], p.Routes()[3]
	if !partner.Admits("acme") || partner.Admits("globex") || partner.Admits(policy.Anonymous) || !root.Admits("globex") || !root.Admits(policy.Anonymous) {
		t.Error("tenants: [acme] must admit acme alone, and no list everyone")
	}
}

func TestRoute(t *testing.T) {
	p := compile(t, file)
	tests := []struct{ path, want string }{
		{"/", "/"}, {"/x", "/"}, {"/partner", "/partner"}, {"/partner/", "/partner"}, {"/partner/a/b", "/partner"}, {"/partnerx", "/"},
		{"/partner/free", "/partner/free"}, {"/partner/free/x", "/partner/free"}, {"/partner/freedom", "/partner"},
		{"/%70artner/x", "/partner"}, {"/caf%C3%A9/x", "/café"}, {"/Partner", "/"},
		{"/x//y", "/"}, {"/x%2Fy", "/"}, {"/group%2Fproject/x;v=1", "/"}, {"/partner//x", "/partner"}, {"/100%25", "/"}, {"/partner/a%2Fb", "/partner"},
	}
	for _, tt := range tests {
		r, err := p.Route(tt.path)
		if err != nil || r.Path != tt.want {
			t.Errorf("%s: %v, %v; want %s", tt.path, r, err, tt.want)
		}
	}
}

// None of the ways to write a path leads past a route.
func TestPathsThatDodgeARoute(t *testing.T) {
	p := compile(t, file)
	for _, path := range []string{
		"", "*", "partner", "/x/../partner", "/x/%2e%2e/partner", "/x/..", "/partner/..", "/partner/%2e%2e/x", "/partner/..;/x", "/..", "/./partner", "/%2e/partner",
		"//partner/x", "/%2fpartner/x", "/partner%2fx", "/partner%2Ffree", "/partner//free", "/partner/./free", "/partner;v=1/x", "/partner%3Bv=1/x",
		"\\partner", "/\\partner", "/%5cpartner", "/%252fpartner", "/%2570artner/x", "/x/%252e%252e/partner", "/partner/%00", "/%zz",
	} {
		if r, err := p.Route(path); !errors.Is(err, policy.ErrAmbiguousPath) {
			t.Errorf("%s: %v, %v; want ErrAmbiguousPath", path, r, err)
		}
	}
}

func TestNoRoute(t *testing.T) {
	p := compile(t, `
identity: {anonymous: share}
routes: [{path: /a/b, upstream: "http://127.0.0.1:1", limits: ["1/s"]}]`)
	for _, path := range []string{"/", "/a", "/b", "/a/bc", "/b/a/b"} {
		if r, err := p.Route(path); !errors.Is(err, policy.ErrNoRoute) {
			t.Errorf("%s: %v, %v; want ErrNoRoute", path, r, err)
		}
	}
}

// FuzzRoute holds that no path that a lenient server takes for one below /a is served by another route.
func FuzzRoute(f *testing.F) {
	c, err := config.Parse("test", []byte(`
identity: {anonymous: share}
routes:
  - {path: /a, upstream: "http://127.0.0.1:1", limits: ["1/s"]}
  - {path: /, upstream: "http://127.0.0.1:1", limits: ["1/s"]}`))
	if err != nil {
		f.Fatal(err)
	}
	p := policy.New(c)
	f.Add("/a/../b%2fa;x//\\")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := p.Route(text)
		if (r == nil) == (err == nil) {
			t.Fatalf("%q: %v and %v", text, r, err)
		}
		decoded, bad := url.PathUnescape(text)
		clean := path.Clean("/" + decoded) // what a lenient server makes of it
		if err == nil && bad == nil && r.Path == "/" && (clean == "/a" || strings.HasPrefix(clean, "/a/")) {
			t.Fatalf("%q dodges /a", text)
		}
	})
}

func TestHashTag(t *testing.T) {
	for key, want := range map[string]string{
		"plan|acme|": "acme", "route|acme|/a|b/": "acme", "total||/a|b/": "", "plan|*|": "*", "anything": "", "": "",
	} {
		if got := policy.HashTag(key); got != want {
			t.Errorf("HashTag(%q) = %q, want %q", key, got, want)
		}
	}
}
