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
)

// A Config is one configuration file. It is read only once made: those who hold it share it.
type Config struct {
	Listen   string   // host:port of the gateway
	Admin    string   // host:port of health; "" = none
	Store    *Redis   // nil = in memory
	Identity Identity // who is calling
	Plans    []Plan   // in the order of the file
	Tenants  []Tenant // in the order of the file
	Routes   []Route  // in the order of the file
}

// Redis is the shared store.
type Redis struct {
	URL      RedisURL
	Timeout  time.Duration // per decision
	Prefix   string        // of every key in Redis
	Replicas int           // gateways that share the store, for on_store_error: local; at least 1
}

// Identity says how a request names its tenant.
type Identity struct {
	Header         string         // the header that holds the API key
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

	line, modeLine int
	tenantLines    []int
}
