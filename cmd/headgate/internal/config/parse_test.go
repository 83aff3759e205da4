package config_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
)

func TestContractExample(t *testing.T) {
	c, err := config.Load("testdata/good/contract.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != "127.0.0.1:8080" || c.Admin != "127.0.0.1:9090" || c.Identity.Anonymous != config.Share || c.Identity.Header != "X-API-Key" {
		t.Errorf("got %+v", c)
	}
	if r := c.Store; r == nil || r.Timeout != 20*time.Millisecond || r.Prefix != "headgate:" || r.Replicas != 0 || r.URL.Addrs[0] != "127.0.0.1:6379" {
		t.Errorf("store %+v", r)
	}
	free := []headgate.Limit{
		{Name: "free/s", Count: 10, Period: time.Second, Burst: 20},
		{Name: "free/day", Algorithm: headgate.FixedWindow, Count: 1000, Period: 24 * time.Hour},
	}
	if !reflect.DeepEqual(c.Plans[0].Limits, free) {
		t.Errorf("plan free %+v, want %+v", c.Plans[0].Limits, free)
	}
	partner := c.Routes[0]
	if partner.Path != "/partner" || partner.Upstream.Host != "127.0.0.1:9001" || partner.OnStoreError != headgate.FailClosed || !partner.Plan ||
		partner.Timeout != config.DefaultUpstreamTimeout || partner.Total[0].Name != "/partner total/s" {
		t.Errorf("route %+v", partner)
	}
	if root := c.Routes[1]; root.Path != "/" || root.OnStoreError != headgate.FailLocal || root.Limits[0].Name != "/ tenant/s" {
		t.Errorf("route %+v", root)
	}
}

// A limit keeps its name, and so what was used under it, when its numbers change.
func TestDefaultNameDoesNotDependOnTheNumbers(t *testing.T) {
	name := func(limit string) string {
		c, err := config.Parse("f", []byte(strings.ReplaceAll(`
identity: {anonymous: share, anonymous_plan: free}
plans: {free: {limits: ["LIMIT"]}}
routes: [{path: /, upstream: "http://127.0.0.1:1"}]`, "LIMIT", limit)))
		if err != nil {
			t.Fatal(err)
		}
		return c.Plans[0].Limits[0].Name
	}
	for _, limit := range []string{"10/s", "20/s", "10/s burst 50", "10/1s"} {
		if got := name(limit); got != "free/s" {
			t.Errorf("%s has the name %q, want free/s", limit, got)
		}
	}
	if got := name("10/90s"); got != "free/1m30s" {
		t.Errorf("10/90s has the name %q", got)
	}
}

func TestParseRedisURL(t *testing.T) {
	tests := []struct {
		url  string
		want config.RedisURL
	}{
		{"redis://127.0.0.1:6379/0", config.RedisURL{Addrs: []string{"127.0.0.1:6379"}}},
		{"redis://cache", config.RedisURL{Addrs: []string{"cache:6379"}}},
		{"redis://[::1]/3", config.RedisURL{Addrs: []string{"[::1]:6379"}, DB: 3}},
		{"rediss://app:p%40ss@cache:6380/2", config.RedisURL{Addrs: []string{"cache:6380"}, User: "app", Password: "p@ss", DB: 2, TLS: true}},
		{"redis://:p@ss@cache", config.RedisURL{Addrs: []string{"cache:6379"}, Password: "p@ss"}},
		{"redis+sentinel://u:p@s1:26379,s2/mymaster/1", config.RedisURL{
			Mode: config.Sentinel, Addrs: []string{"s1:26379", "s2:26379"}, Master: "mymaster", User: "u", Password: "p", DB: 1,
		}},
		{"rediss+cluster://n1:7000,n2:7001", config.RedisURL{Mode: config.Cluster, Addrs: []string{"n1:7000", "n2:7001"}, TLS: true}},
	}
	for _, tt := range tests {
		got, err := config.ParseRedisURL(tt.url)
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v, %v; want %+v", tt.url, got, err, tt.want)
		}
		if got.Password != "" && strings.Contains(got.String(), got.Password) {
			t.Errorf("%s shows its password", got)
		}
	}
}

func TestFileThatCannotBeRead(t *testing.T) {
	_, err := config.Load("testdata/none.yaml")
	want := "testdata/none.yaml: cannot be read: no such file or directory; want the path of a YAML file"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestDenialCache(t *testing.T) {
	for text, want := range map[string]*config.DenialCache{
		"":                                     nil,
		"denial_cache: {}":                     {MaxStaleness: 100 * time.Millisecond, MaxKeys: 8192},
		"denial_cache: {max_staleness: 250ms}": {MaxStaleness: 250 * time.Millisecond, MaxKeys: 8192},
		"denial_cache: {max_keys: 9}":          {MaxStaleness: 100 * time.Millisecond, MaxKeys: 9},
	} {
		c, err := config.Parse("f", []byte(strings.ReplaceAll(`
store: {redis: {url: "redis://127.0.0.1"}, CACHE}
identity: {anonymous: share}
routes: [{path: /, upstream: "http://127.0.0.1:1", limits: ["1/s"], on_store_error: open}]`, "CACHE", text)))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(c.Denials, want) {
			t.Errorf("%s: %+v, want %+v", text, c.Denials, want)
		}
	}
}

func TestLeases(t *testing.T) {
	limits := func(c *config.Config) []string {
		var list []string
		for l := range c.Leased {
			list = append(list, l.Name+" "+l.String())
		}
		slices.Sort(list)
		return list
	}
	tests := []struct {
		store, route string
		lifetime     time.Duration
		leased       []string
	}{
		{"", `limits: ["1/s", {limit: 2/day}, {limit: 3/minute, lease: false}]`, time.Second, nil},
		{"", `limits: [{limit: 1/s, lease: true}, "2/day"], total: [{name: all, limit: 3/s, lease: true}]`, time.Second, []string{"/ tenant/s 1/s", "all 3/s"}},
		{", lease: {lifetime: 250ms}", `limits: ["1/s"]`, 250 * time.Millisecond, nil},
	}
	for _, tt := range tests {
		c, err := config.Parse("f", []byte(fmt.Sprintf(`
store: {redis: {url: "redis://127.0.0.1"}%s}
identity: {anonymous: share}
routes: [{path: /, upstream: "http://127.0.0.1:1", on_store_error: open, %s}]`, tt.store, tt.route)))
		if err != nil {
			t.Fatal(err)
		}
		if got := limits(c); c.Lease != tt.lifetime || !slices.Equal(got, tt.leased) {
			t.Errorf("%s: %v and %q, want %v and %q", tt.route, c.Lease, got, tt.lifetime, tt.leased)
		}
	}
}
