package config

import (
	"net/netip"
	"strings"
	"time"

	"github.com/headgate/headgate/denial"
	"go.yaml.in/yaml/v4"
)

// Longest times that a file may ask for.
const (
	maxStoreTimeout    = 10 * time.Second
	maxStaleness       = time.Minute
	maxUpstreamTimeout = time.Hour
	maxStallTimeout    = time.Hour
	maxDrain           = 5 * time.Minute
)

// Bounds of max_header and max_body in bytes.
const (
	minHeader = 4 << 10
	maxHeader = 16 << 20
	maxBody   = 1 << 40
)

// maxReplicas bounds store.redis.replicas.
const maxReplicas = 1_000_000

// document reads the file as a whole.
func (d *decoder) document(n *yaml.Node, c *Config) {
	if c.lines == nil {
		c.lines = make(map[string]int)
	}
	d.object(n, "",
		field{name: "listen", read: func(v *yaml.Node) { d.listenAddr(v, "listen", &c.Listen); c.lines["listen"] = v.Line }},
		field{name: "tls", read: func(v *yaml.Node) { c.TLS = d.keyPair(v, "tls"); c.lines["tls"] = v.Line }},
		field{name: "h2c", read: func(v *yaml.Node) { d.boolean(v, "h2c", &c.H2C); c.lines["h2c"] = v.Line }},
		field{name: "max_header", read: func(v *yaml.Node) {
			d.size(v, "max_header", minHeader, maxHeader, &c.MaxHeader)
			c.lines["max_header"] = v.Line
		}},
		field{name: "admin", read: func(v *yaml.Node) { d.listenAddr(v, "admin", &c.Admin); c.lines["admin"] = v.Line }},
		field{name: "admin_pprof", read: func(v *yaml.Node) { d.boolean(v, "admin_pprof", &c.AdminPprof); c.lines["admin_pprof"] = v.Line }},
		field{name: "api", read: func(v *yaml.Node) { d.api(v, c) }},
		field{name: "drain", read: func(v *yaml.Node) { d.durationOrZero(v, "drain", maxDrain, &c.Drain) }},
		field{name: "store", read: func(v *yaml.Node) { d.store(v, c); c.lines["store"] = v.Line }},
		field{name: "identity", read: func(v *yaml.Node) { d.identity(v, c) }},
		field{name: "plans", read: func(v *yaml.Node) { d.plans(v, c) }},
		field{name: "tenants", read: func(v *yaml.Node) { d.tenants(v, c) }},
		field{name: "routes", example: `[{path: /, upstream: "http://127.0.0.1:9000"}]`, read: func(v *yaml.Node) { d.routes(v, c) }})
}

func (d *decoder) listenAddr(n *yaml.Node, path string, to *string) {
	s, ok := d.str(n, path, "an address such as 127.0.0.1:8080")
	if !ok {
		return
	}
	if err := checkAddr(s, true); err != nil {
		d.fault(n.Line, "%s: %s, want an address such as 127.0.0.1:8080", path, err)
		return
	}
	*to = s
}

func (d *decoder) store(n *yaml.Node, c *Config) {
	d.object(n, "store",
		field{name: "redis", example: `{url: "redis://127.0.0.1:6379/0"}`, read: func(v *yaml.Node) {
			r := &Redis{Timeout: DefaultStoreTimeout, Prefix: DefaultPrefix}
			d.redis(v, r)
			c.Store = r
		}},
		field{name: "denial_cache", read: func(v *yaml.Node) { c.Denials = d.denialCache(v) }},
		field{name: "lease", read: func(v *yaml.Node) { d.lease(v, c) }})
}

func (d *decoder) denialCache(n *yaml.Node) *DenialCache {
	const path = "store.denial_cache"
	c := &DenialCache{MaxStaleness: denial.DefaultMaxStaleness, MaxKeys: denial.DefaultMaxKeys}
	d.object(n, path,
		field{name: "max_staleness", read: func(v *yaml.Node) { d.duration(v, path+".max_staleness", maxStaleness, &c.MaxStaleness) }},
		field{name: "max_keys", read: func(v *yaml.Node) { d.integer(v, path+".max_keys", 1, denial.MostKeys, &c.MaxKeys) }})
	return c
}

func (d *decoder) redis(n *yaml.Node, r *Redis) {
	const path = "store.redis"
	d.object(n, path,
		field{name: "url", example: `"redis://127.0.0.1:6379/0"`, read: func(v *yaml.Node) { d.redisURL(v, path+".url", &r.URL) }},
		field{name: "timeout", read: func(v *yaml.Node) { d.duration(v, path+".timeout", maxStoreTimeout, &r.Timeout) }},
		field{name: "prefix", read: func(v *yaml.Node) { d.prefix(v, path+".prefix", &r.Prefix) }},
		field{name: "replicas", read: func(v *yaml.Node) { d.integer(v, path+".replicas", 1, maxReplicas, &r.Replicas) }},
		field{name: "tls", read: func(v *yaml.Node) { d.redisTLS(v, path+".tls", &r.TLS) }},
		field{name: "sentinel_user", read: func(v *yaml.Node) { d.secret(v, path+".sentinel_user", &r.SentinelUser) }},
		field{name: "sentinel_password", read: func(v *yaml.Node) { d.secret(v, path+".sentinel_password", &r.SentinelPassword) }})
	d.checkRedis(n, path, r)
}

func (d *decoder) redisURL(n *yaml.Node, path string, to *RedisURL) {
	s, ok := d.str(n, path, "a URL such as redis://127.0.0.1:6379/0")
	if !ok {
		return
	}
	u, err := ParseRedisURL(s)
	if err != nil {
		d.fault(n.Line, "%s: %s, want %s", path, err, RedisForms)
		return
	}
	*to = u
}

// prefix reads the prefix of keys. Braces would choose a slot of a cluster for all of them.
func (d *decoder) prefix(n *yaml.Node, path string, to *string) {
	const want = "at most 64 printable characters without braces, such as headgate:"
	s, ok := d.str(n, path, want)
	if !ok {
		return
	}
	unfit := func(r rune) bool { return r < '!' || r > '~' || r == '{' || r == '}' }
	if len(s) > 64 || strings.ContainsFunc(s, unfit) {
		d.fault(n.Line, "%s is %s, want %s", path, quote(s), want)
		return
	}
	*to = s
}

func (d *decoder) identity(n *yaml.Node, c *Config) {
	const path = "identity"
	id := &c.Identity
	d.object(n, path,
		field{name: "api_key", read: func(v *yaml.Node) { d.apiKey(v, id); d.apiKeySeen = true }},
		field{name: "jwt", read: func(v *yaml.Node) { id.JWT = d.jwt(v) }},
		field{name: "trusted_proxies", read: func(v *yaml.Node) { d.trustedProxies(v, path+".trusted_proxies", id) }},
		field{name: "anonymous", read: func(v *yaml.Node) {
			if i, ok := d.choice(v, path+".anonymous", "deny", "share"); ok {
				id.Anonymous = Anonymous(i)
			}
		}},
		field{name: "anonymous_plan", read: func(v *yaml.Node) {
			id.AnonymousPlan, _ = d.name(v, path+".anonymous_plan")
			d.anonymousPlanLine = v.Line
		}})
}

func (d *decoder) apiKey(n *yaml.Node, id *Identity) {
	const path = "identity.api_key"
	d.object(n, path,
		field{name: "header", read: func(v *yaml.Node) { d.header(v, path+".header", &id.Header) }},
		field{name: "forward", read: func(v *yaml.Node) { d.boolean(v, path+".forward", &id.Forward) }})
}

// header reads the name of a header field (a token of RFC 9110). Those that a proxy handles itself cannot hold a key.
func (d *decoder) header(n *yaml.Node, path string, to *string) {
	const want = "the name of a header field such as X-API-Key"
	s, ok := d.str(n, path, want)
	if !ok {
		return
	}
	unfit := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	}
	switch lower := strings.ToLower(s); {
	case s == "" || len(s) > 64 || strings.ContainsFunc(s, unfit):
		d.fault(n.Line, "%s is %s, want %s", path, quote(s), want)
	case lower == "host" || lower == "connection" || lower == "upgrade" || lower == "te" || lower == "transfer-encoding" || lower == "content-length":
		d.fault(n.Line, "%s is %s, which HTTP itself uses, want %s", path, quote(s), want)
	default:
		*to = s
	}
}

func (d *decoder) trustedProxies(n *yaml.Node, path string, id *Identity) {
	d.list(n, path, "a list of networks such as [10.0.0.0/8]", func(item *yaml.Node) {
		s, ok := d.str(item, path+"[]", "a network such as 10.0.0.0/8")
		if !ok {
			return
		}
		p, err := parseNetwork(s)
		switch {
		case err != nil:
			d.fault(item.Line, "%s[] is %s, want a network such as 10.0.0.0/8 or an address", path, quote(s))
		case p.Bits() == 0:
			d.fault(item.Line, "%s[] is %s, which holds every address, want the networks of your own proxies", path, quote(s))
		case p != p.Masked():
			d.fault(item.Line, "%s[] is %s, an address inside a network; want the network %s", path, quote(s), p.Masked())
		default:
			id.TrustedProxies = append(id.TrustedProxies, p)
		}
	})
}

// parseNetwork reads a network or one address.
func parseNetwork(s string) (netip.Prefix, error) {
	if strings.Contains(s, "/") {
		return netip.ParsePrefix(s)
	}
	addr, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Prefix{}, err
	}
	return addr.WithZone("").Prefix(addr.BitLen())
}

// name reads the name of a plan or a tenant: no other characters, since names become parts of keys and of header fields.
func (d *decoder) name(n *yaml.Node, path string) (string, bool) {
	const want = "a name of 1 to 64 letters, digits, '.', '_' or '-', quoted if it could be a number"
	s, ok := d.str(n, path, want)
	if ok && !ValidName(s) {
		d.fault(n.Line, "%s is %s, want %s", path, quote(s), want)
		return "", false
	}
	return s, ok
}

// ValidName says whether s could be the name of a plan or a tenant.
func ValidName(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || c != '.' && c != '_' && c != '-') {
			return false
		}
	}
	return s != "" && len(s) <= 64
}
