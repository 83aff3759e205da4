package config

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// Defaults and bounds of [JWT].
const (
	DefaultJWTHeader   = "Authorization"
	DefaultJWTLeeway   = 30 * time.Second
	DefaultJWKSRefresh = 5 * time.Minute
	maxJWTLeeway       = 5 * time.Minute
	minJWKSRefresh     = time.Second
	maxJWKSRefresh     = 24 * time.Hour
)

// JWT says which tokens are believed, and what in them names the tenant.
type JWT struct {
	Header      string        // the header that bears "Bearer TOKEN"
	Forward     bool          // whether the upstream sees that header
	JWKSURL     string        // where the keys are; "" = in JWKSFile
	JWKSFile    string        // the path of a file with the keys; "" = at JWKSURL
	Refresh     time.Duration // how old the keys may become before they are read again
	Issuer      string        // what iss must be
	Audience    []string      // one of these must be in aud
	Algorithms  []string      // of signatures, at least one; none of them symmetric
	Leeway      time.Duration // by which the clocks of issuer and gateway may differ
	TenantClaim string        // the claim that names the tenant
	PlanClaim   string        // the claim that names the plan of a tenant that the file does not list; "" = only those that it lists

	line, headerLine int
}

// algorithms that a file may ask for: each is verified by a public key.
var algorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

func (d *decoder) jwt(n *yaml.Node) *JWT {
	const path = "identity.jwt"
	j := &JWT{
		Header: DefaultJWTHeader, Forward: true, Refresh: DefaultJWKSRefresh, Leeway: DefaultJWTLeeway, Algorithms: []string{"RS256", "ES256"},
		line: n.Line, headerLine: n.Line,
	}
	before := len(d.problems)
	d.object(n, path,
		field{name: "header", read: func(v *yaml.Node) { d.header(v, path+".header", &j.Header); j.headerLine = v.Line }},
		field{name: "forward", read: func(v *yaml.Node) { d.boolean(v, path+".forward", &j.Forward) }},
		field{name: "jwks_url", read: func(v *yaml.Node) { d.jwksURL(v, path+".jwks_url", &j.JWKSURL) }},
		field{name: "jwks_file", read: func(v *yaml.Node) {
			d.word(v, path+".jwks_file", "the path of a file with a JSON Web Key Set", &j.JWKSFile)
		}},
		field{name: "refresh", read: func(v *yaml.Node) {
			d.durationFrom(v, path+".refresh", "a duration from 1s to 24h", minJWKSRefresh, maxJWKSRefresh, &j.Refresh)
		}},
		field{name: "issuer", example: `"https://idp.example.com/"`, read: func(v *yaml.Node) { d.word(v, path+".issuer", "what iss is in a token", &j.Issuer) }},
		field{name: "audience", example: `my-api`, read: func(v *yaml.Node) { j.Audience = d.words(v, path+".audience", "what aud holds in a token") }},
		field{name: "algorithms", read: func(v *yaml.Node) { j.Algorithms = d.algorithms(v, path+".algorithms") }},
		field{name: "leeway", read: func(v *yaml.Node) { d.durationOrZero(v, path+".leeway", maxJWTLeeway, &j.Leeway) }},
		field{name: "tenant_claim", example: `tenant`, read: func(v *yaml.Node) { d.word(v, path+".tenant_claim", "the name of a claim", &j.TenantClaim) }},
		field{name: "plan_claim", read: func(v *yaml.Node) { d.word(v, path+".plan_claim", "the name of a claim", &j.PlanClaim) }})
	if len(d.problems) == before && (j.JWKSURL == "") == (j.JWKSFile == "") {
		d.fault(n.Line, "%s has both or none of jwks_url and jwks_file, want one of them: where are the keys?", path)
	}
	return j
}

// checkJWT looks at the tokens beside the rest of the file.
func (d *decoder) checkJWT(c *Config) {
	j := c.Identity.JWT
	if j == nil {
		return
	}
	if strings.EqualFold(j.Header, c.Identity.Header) {
		d.fault(j.headerLine, "identity.jwt.header and identity.api_key.header are both %s, want a header for each", quote(j.Header))
	}
	if j.PlanClaim != "" && len(c.Plans) == 0 {
		d.fault(j.line, "identity.jwt.plan_claim has no use without plans, want some under plans:")
	}
}

// jwksURL reads where keys are. Over plain HTTP anyone on the way could put in keys of their own.
func (d *decoder) jwksURL(n *yaml.Node, path string, to *string) {
	const want = "a URL such as https://idp.example.com/.well-known/jwks.json"
	s, ok := d.str(n, path, want)
	if !ok {
		return
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.Fragment != "":
		d.fault(n.Line, "%s is no such URL, want %s", path, want)
	case u.Scheme == "http" && !loopback(u.Host):
		d.fault(n.Line, "%s is http, where anyone on the way could put in keys of their own, want https (or http to a loopback address)", path)
	default:
		*to = s
	}
}

// loopback says whether host, with or without a port, is this machine itself.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// word reads a text that is not empty.
func (d *decoder) word(n *yaml.Node, path, want string, to *string) {
	s, ok := d.str(n, path, want)
	if !ok {
		return
	}
	if s == "" {
		d.fault(n.Line, "%s is empty, want %s", path, want)
		return
	}
	*to = s
}

// words reads a text or a list of some.
func (d *decoder) words(n *yaml.Node, path, want string) []string {
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items, path = n.Content, path+"[]"
	}
	var out []string
	for _, item := range items {
		var s string
		if d.word(item, path, want, &s); s != "" {
			out = append(out, s)
		}
	}
	if len(items) == 0 {
		d.fault(n.Line, "%s is an empty list, want %s", strings.TrimSuffix(path, "[]"), want)
	}
	return out
}

func (d *decoder) algorithms(n *yaml.Node, path string) []string {
	list := d.words(n, path, "algorithms such as [RS256, ES256]")
	for _, a := range list {
		if !slices.Contains(algorithms, a) {
			d.fault(n.Line, "%s has %s, want of %s: tokens are verified by the issuer's public key", path, quote(a), strings.Join(algorithms, ", "))
		}
	}
	return list
}
