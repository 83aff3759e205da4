// Package config reads the program's configuration file. Reading is strict: an unknown key, a wrong type or a limit that cannot work
// is a [Problem] with its line, and all problems of a file are reported at once. A [Config] that Parse returned is complete: defaults
// are filled in, every name it refers to exists.
package config

import (
	"net/netip"
	"net/url"
	"time"

	"github.com/headgate/headgate"
)

// Defaults of keys that a file leaves out.
const (
	DefaultListen          = "127.0.0.1:8080"
	DefaultHeader          = "X-API-Key"
	DefaultPrefix          = "headgate:"
	DefaultStoreTimeout    = headgate.DefaultTimeout
	DefaultUpstreamTimeout = 30 * time.Second
	DefaultStallTimeout    = 30 * time.Second
	DefaultMaxHeader       = 64 << 10
	DefaultDrain           = time.Second
)

// A Config is one configuration file. It is read only once made: those who hold it share it.
type Config struct {
	Listen     string        // host:port of the gateway
	TLS        *KeyPair      // of the gateway's listener; nil = plain HTTP
	H2C        bool          // whether a plain listener speaks HTTP/2 too, to those who begin with it
	MaxHeader  int64         // bytes of a request's header
	Admin      string        // host:port of health; "" = none
	API        API           // the decision API of the admin listener
	AdminPprof bool          // whether the admin listener serves profiles
	Drain      time.Duration // how long requests are still taken once the gateway says that it is not ready
	Store      *Redis        // nil = in memory
	Denials    *DenialCache  // nil = every denial is the store's
	Lease      time.Duration // how long tokens that were leased from the shared store may be spent
	Identity   Identity      // who is calling
	Plans      []Plan        // in the order of the file
	Tenants    []Tenant      // in the order of the file
	Routes     []Route       // in the order of the file

	// Leased are the limits of plans and routes that are decided by leases, by their names and numbers: what stands under another name, or in
	// routes[].outbound, is not.
	Leased map[headgate.Limit]bool

	file  string         // as it was called
	lines map[string]int // of the keys at the top
}

// A KeyPair names the files of a certificate chain and its key, in PEM.
type KeyPair struct{ Cert, Key string }

// Redis is the shared store.
type Redis struct {
	URL      RedisURL
	Timeout  time.Duration // per decision
	Prefix   string        // of every key in Redis
	Replicas int           // gateways that share the store, for on_store_error: local; 0 = those that are alive are counted
	TLS      RedisTLS      // for a URL of rediss

	SentinelUser     string // for the sentinels themselves; "" = default
	SentinelPassword string // "" = none
}

// A DenialCache answers in process those who were denied and come again too early.
type DenialCache struct {
	MaxStaleness time.Duration // how long a denial is believed at most
	MaxKeys      int           // denials that are remembered
}

// RedisTLS says whom a TLS connection to Redis believes and what it shows. Each is the path of a PEM file.
type RedisTLS struct {
	CA   string  // "" = the system's
	Pair KeyPair // empty = no client certificate
}

// Identity says how a request names its tenant.
type Identity struct {
	Header         string         // the header that holds the API key; "" = there are no API keys
	JWT            *JWT           // nil = no tokens
	Forward        bool           // whether the upstream sees that header
	TrustedProxies []netip.Prefix // peers whose X-Forwarded-* fields are believed
	Anonymous      Anonymous      // what happens to those without a key
	AnonymousPlan  string         // the plan that they share; "" = none
}

// Anonymous says what happens to a request without an API key.
type Anonymous uint8

const (
	// Deny turns anonymous callers away. The zero value.
	Deny Anonymous = iota
	// Share treats all anonymous callers as one.
	Share
)

// A Plan is a budget that its tenants each have over all routes.
type Plan struct {
	Name   string
	Limits []headgate.Limit // at least one, each with a Name
	line   int
}

// A Tenant is a caller that is known by its API keys.
type Tenant struct {
	Name string
	Plan string
	Keys [][32]byte // SHA-256 digests of its API keys, at least one

	line, planLine int
	mapping        int // the line where it begins
	keySeen        bool
	keyLines       []int
}

// A Route sends the requests under a path to an upstream.
type Route struct {
	Path     string   // "/" or "/a/b": without a slash at its end
	Segments []string // Path in its segments; none for "/"
	Upstream *url.URL
	// OnStoreError is what callers get when the shared store cannot answer.
	OnStoreError headgate.FailureMode
	Plan         bool             // whether the tenant's plan is charged here
	Limits       []headgate.Limit // each tenant's budget on this route
	Total        []headgate.Limit // the budget of all callers of this route together
	Tenants      []string         // who may call; nil = everyone
	Timeout      time.Duration    // until the upstream's response begins
	// DenyPreflight turns CORS preflights away. Otherwise they pass without a key and uncharged, since a browser sends them so.
	DenyPreflight bool
	MaxBody       int64         // bytes of a request's body; 0 = any
	StallTimeout  time.Duration // how long a caller may neither send nor take a byte that is waited for
	CORSOrigins   []string      // whose pages may read what the gateway itself answers; "*" = everybody's
	Outbound      *Outbound     // nil = the upstream is one's own

	line, modeLine int
	tenantLines    []int
}
