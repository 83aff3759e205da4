package config

import "github.com/headgate/headgate"

// check looks at what only the file as a whole shows.
func (d *decoder) check(c *Config) {
	plans := make(map[string]*Plan)
	for i := range c.Plans {
		plans[c.Plans[i].Name] = &c.Plans[i]
	}
	d.checkTenants(c, plans)
	d.checkAnonymous(c, plans)
	d.checkRoutes(c)
	d.checkBill(c, plans)
	d.checkAPI(c)
	if c.AdminPprof && c.Admin == "" {
		d.fault(c.lines["admin_pprof"], "admin_pprof has no use without an admin listener, want for example admin: 127.0.0.1:9090 beside it")
	}
	d.checkJWT(c)
	d.checkLeases(c)
	if c.H2C && c.TLS != nil {
		d.fault(c.lines["h2c"], "h2c has no use with tls, where HTTP/2 is spoken anyway; want one of them left out")
	}
	if c.Admin != "" && c.Admin == c.Listen {
		d.fault(1, "admin and listen are both %s, want admin on an address of its own: it is not for the public", c.Admin)
	}
}

func (d *decoder) checkTenants(c *Config, plans map[string]*Plan) {
	names := make(map[string]int)
	keys := make(map[[32]byte]int)
	withKeys := false
	for _, t := range c.Tenants {
		withKeys = withKeys || t.keySeen
		if !t.keySeen && c.Identity.JWT == nil {
			d.fault(t.mapping, `api_key_sha256 is missing in tenants[], want for example api_key_sha256: "<hex>" (headgate keygen prints one)`)
		}
		if first, taken := names[t.Name]; taken && t.Name != "" {
			d.fault(t.line, "tenant %s comes twice, first on line %d; want one of each name (api_key_sha256 may be a list)", t.Name, first)
		} else {
			names[t.Name] = t.line
		}
		if t.Plan != "" && plans[t.Plan] == nil {
			d.fault(t.planLine, "tenants[].plan is %s, which is no plan, want %s", quote(t.Plan), planNames(c))
		}
		for i, k := range t.Keys {
			if first, taken := keys[k]; taken {
				d.fault(t.keyLines[i], "this API key is already that of the tenant on line %d, want a key for each (headgate keygen makes one)", first)
				continue
			}
			keys[k] = t.keyLines[i]
		}
	}
	if c.Identity.JWT != nil && !d.apiKeySeen && !withKeys {
		c.Identity.Header = "" // the file knows no API keys
	}
}

// planNames says which plans there are.
func planNames(c *Config) string {
	names := make([]string, len(c.Plans))
	for i := range c.Plans {
		names[i] = c.Plans[i].Name
	}
	switch len(names) {
	case 0:
		return "one that stands under plans:"
	case 1:
		return names[0]
	}
	return nearest("", names)
}

func (d *decoder) checkAnonymous(c *Config, plans map[string]*Plan) {
	id := c.Identity
	switch {
	case id.AnonymousPlan == "":
	case id.Anonymous == Deny:
		d.fault(d.anonymousPlanLine, "identity.anonymous_plan has no use while anonymous callers are denied, want anonymous: share beside it")
	case plans[id.AnonymousPlan] == nil:
		d.fault(d.anonymousPlanLine, "identity.anonymous_plan is %s, which is no plan, want %s", quote(id.AnonymousPlan), planNames(c))
	}
	claimed := id.JWT != nil && id.JWT.PlanClaim != ""
	if id.Anonymous == Deny && c.Tenants == nil && !claimed {
		d.fault(1, "there are no tenants and anonymous callers are denied, so nobody could call; want tenants, or identity: {anonymous: share}")
	}
}

func (d *decoder) checkRoutes(c *Config) {
	tenants := make(map[string]bool)
	for _, t := range c.Tenants {
		tenants[t.Name] = true
	}
	paths := make(map[string]int)
	for _, r := range c.Routes {
		if first, taken := paths[r.Path]; taken && r.Path != "" {
			d.fault(r.line, "route %s comes twice, first on line %d; want one route for a path (a slash at its end makes no difference)", r.Path, first)
		} else {
			paths[r.Path] = r.line
		}
		if c.Store != nil && r.modeLine == 0 {
			d.fault(r.line, "on_store_error is missing in %s, want open, closed or local: with a shared store it is a choice, not a default", routeName(r))
		}
		for i, name := range r.Tenants {
			if !tenants[name] {
				d.fault(r.tenantLines[i], "routes[].tenants has %s, which is no tenant, want a name from tenants:", quote(name))
			}
		}
		if reachable(c, r) && !limited(c, r) {
			d.fault(r.line, "nothing limits anonymous callers on %s, want limits or total on the route, or identity.anonymous_plan", routeName(r))
		}
	}
}

func routeName(r Route) string {
	if r.Path == "" {
		return "this route"
	}
	return "route " + r.Path
}

// reachable says whether anonymous callers may call the route.
func reachable(c *Config, r Route) bool { return c.Identity.Anonymous == Share && r.Tenants == nil }

// limited says whether something limits anonymous callers on the route.
func limited(c *Config, r Route) bool {
	return r.Limits != nil || r.Total != nil || r.Plan && c.Identity.AnonymousPlan != ""
}

// checkBill looks at the limits that one request can meet together: their names must differ, since a response names each of them,
// and they must fit one decision.
func (d *decoder) checkBill(c *Config, plans map[string]*Plan) {
	for _, r := range c.Routes {
		own := make(map[string]string)
		for _, l := range r.Limits {
			own[l.Name] = "its limits"
		}
		for _, l := range r.Total {
			if where, taken := own[l.Name]; taken {
				d.fault(r.line, "a limit in total of %s has the name %s, as one of %s; want different names", routeName(r), quote(l.Name), where)
			}
			own[l.Name] = "its total"
		}
		if !r.Plan {
			continue
		}
		for _, p := range c.Plans {
			d.checkPlanOn(r, p, own)
		}
	}
}

func (d *decoder) checkPlanOn(r Route, p Plan, own map[string]string) {
	for _, l := range p.Limits {
		if where, taken := own[l.Name]; taken {
			d.fault(r.line, "a limit of plan %s has the name %s, as one of %s in %s; want different names", p.Name, quote(l.Name), where, routeName(r))
		}
	}
	if n := len(p.Limits) + len(own); n > headgate.MaxCharges {
		d.fault(r.line, "plan %s and %s have %d limits together, want at most %d", p.Name, routeName(r), n, headgate.MaxCharges)
	}
}
