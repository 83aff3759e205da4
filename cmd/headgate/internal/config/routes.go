package config

import (
	"net/url"
	"strings"

	"github.com/headgate/headgate"
	"go.yaml.in/yaml/v4"
)

// maxPath is the longest path of a route in bytes: with the name of a tenant it must fit a key.
const maxPath = 512

func (d *decoder) routes(n *yaml.Node, c *Config) {
	const want = `a list of routes such as {path: /, upstream: "http://127.0.0.1:9000"}`
	d.list(n, "routes", want, func(item *yaml.Node) {
		r := Route{Plan: true, Timeout: DefaultUpstreamTimeout, StallTimeout: DefaultStallTimeout, line: item.Line}
		d.route(item, &r)
		c.Routes = append(c.Routes, r)
	})
	if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		d.fault(n.Line, "routes is an empty list, want %s", want)
	}
}

func (d *decoder) route(n *yaml.Node, r *Route) {
	const path = "routes[]"
	var limits, total, outbound *yaml.Node // read last: their names begin with the route's path
	d.object(n, path,
		field{name: "path", example: `/partner/`, read: func(v *yaml.Node) { d.routePath(v, path+".path", r) }},
		field{name: "upstream", example: `"http://127.0.0.1:9000"`, read: func(v *yaml.Node) { d.upstream(v, path+".upstream", r) }},
		field{name: "on_store_error", read: func(v *yaml.Node) { d.mode(v, path+".on_store_error", r) }},
		field{name: "plan", read: func(v *yaml.Node) { d.boolean(v, path+".plan", &r.Plan) }},
		field{name: "limits", read: func(v *yaml.Node) { limits = v }},
		field{name: "total", read: func(v *yaml.Node) { total = v }},
		field{name: "outbound", read: func(v *yaml.Node) { outbound = v }},
		field{name: "tenants", read: func(v *yaml.Node) { d.allowed(v, path+".tenants", r) }},
		field{name: "timeout", read: func(v *yaml.Node) { d.duration(v, path+".timeout", maxUpstreamTimeout, &r.Timeout) }},
		field{name: "preflight", read: func(v *yaml.Node) {
			if i, ok := d.choice(v, path+".preflight", "pass", "deny"); ok {
				r.DenyPreflight = i == 1
			}
		}},
		field{name: "max_body", read: func(v *yaml.Node) { d.size(v, path+".max_body", 1, maxBody, &r.MaxBody) }},
		field{name: "stall_timeout", read: func(v *yaml.Node) { d.duration(v, path+".stall_timeout", maxStallTimeout, &r.StallTimeout) }},
		field{name: "cors_origins", read: func(v *yaml.Node) { d.origins(v, path+".cors_origins", r) }})
	if limits != nil {
		r.Limits = append([]headgate.Limit{}, d.limits(limits, path+".limits", r.Path+" tenant")...)
	}
	if total != nil {
		r.Total = append([]headgate.Limit{}, d.limits(total, path+".total", r.Path+" total")...)
	}
	if outbound != nil {
		d.outbound(outbound, path+".outbound", r)
	}
}

// routePath reads the path that a route serves. It is made of whole segments, so "/a/" and "/a" are the same.
func (d *decoder) routePath(n *yaml.Node, path string, r *Route) {
	const want = "a path such as /partner/"
	s, ok := d.str(n, path, want)
	if !ok {
		return
	}
	segments, problem := splitPath(s)
	if problem != "" {
		d.fault(n.Line, "%s is %s, which %s; want %s", path, quote(s), problem, want)
		return
	}
	r.Segments, r.Path, r.line = segments, "/"+strings.Join(segments, "/"), n.Line
}

// splitPath returns the segments of a route's path, or what is wrong with it.
func splitPath(s string) (segments []string, problem string) {
	switch {
	case !strings.HasPrefix(s, "/"):
		return nil, "does not begin with a slash"
	case len(s) > maxPath:
		return nil, "has more than 512 bytes"
	case strings.ContainsAny(s, "%?#\\;*"):
		return nil, "has one of the characters % ? # \\ ; * (write it decoded, without wildcard: a path covers all below it)"
	case s == "/":
		return nil, ""
	}
	segments = strings.Split(strings.TrimSuffix(s[1:], "/"), "/")
	for _, seg := range segments {
		if seg == "" || seg == "." || seg == ".." {
			return nil, "has an empty segment, . or .."
		}
	}
	return segments, ""
}

func (d *decoder) upstream(n *yaml.Node, path string, r *Route) {
	const want = "a URL such as http://127.0.0.1:9000"
	s, ok := d.str(n, path, want)
	if !ok {
		return
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		d.fault(n.Line, "%s is not a URL, want %s", path, want)
	case u.User != nil:
		d.fault(n.Line, "%s has a user or password, want %s", path, want)
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		d.fault(n.Line, "%s is %s, want %s", path, quote(s), want)
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		d.fault(n.Line, "%s has a query or fragment, want %s", path, want)
	default:
		r.Upstream = u
	}
}

func (d *decoder) mode(n *yaml.Node, path string, r *Route) {
	r.modeLine = n.Line
	d.failureMode(n, path, &r.OnStoreError)
}

// allowed reads the names of those who may call the route.
func (d *decoder) allowed(n *yaml.Node, path string, r *Route) {
	r.Tenants = []string{}
	d.list(n, path, "a list of names of tenants", func(item *yaml.Node) {
		if name, ok := d.name(item, path+"[]"); ok {
			r.Tenants = append(r.Tenants, name)
			r.tenantLines = append(r.tenantLines, item.Line)
		}
	})
	if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		d.fault(n.Line, "%s is an empty list, which nobody could call; want names of tenants, or the key left out for everyone", path)
	}
}
