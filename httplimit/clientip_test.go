package httplimit_test

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

// proxies are the trusted hops of the tests.
var proxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.7/32"), netip.MustParsePrefix("fd00::/8")}

func newClientIP(tb testing.TB, cfg httplimit.ClientIPConfig) *httplimit.ClientIP {
	tb.Helper()
	c, err := httplimit.NewClientIP(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// from is a request of this peer with a header field of these lines.
func from(peer, name string, lines ...string) *http.Request {
	r := get()
	r.RemoteAddr = peer
	r.Header[http.CanonicalHeaderKey(name)] = lines
	return r
}

func TestClientIPBehindTrustedProxies(t *testing.T) {
	const xff, fwd = "X-Forwarded-For", "Forwarded"
	for _, test := range []struct {
		name   string
		peer   string
		header string
		lines  []string
		want   string
	}{
		{"nobody trusted in front", "203.0.113.9:4711", xff, []string{"198.51.100.1"}, "203.0.113.9"},
		{"no header", "10.1.2.3:80", xff, nil, "10.1.2.3"},
		{"one proxy", "10.1.2.3:80", xff, []string{"198.51.100.1"}, "198.51.100.1"},
		{"two proxies", "10.1.2.3:80", xff, []string{"198.51.100.1, 192.0.2.7"}, "198.51.100.1"},
		{"two lines", "10.1.2.3:80", xff, []string{"6.6.6.6", "198.51.100.1", "192.0.2.7,10.9.9.9"}, "198.51.100.1"},
		{"what the caller sent", "10.1.2.3:80", xff, []string{"6.6.6.6, 7.7.7.7, 198.51.100.1"}, "198.51.100.1"},
		{"a caller who claims to be a proxy", "10.1.2.3:80", xff, []string{"6.6.6.6, 10.0.0.1, 198.51.100.1"}, "198.51.100.1"},
		{"all trusted", "10.1.2.3:80", xff, []string{"10.0.0.1, 10.0.0.2"}, "10.0.0.1"},
		{"unknown", "10.1.2.3:80", xff, []string{"6.6.6.6, unknown, 10.0.0.2"}, "10.0.0.2"},
		{"empty", "10.1.2.3:80", xff, []string{""}, "10.1.2.3"},
		{"garbage", "10.1.2.3:80", xff, []string{strings.Repeat("1", 5000)}, "10.1.2.3"},
		{"port", "10.1.2.3:80", xff, []string{"198.51.100.1:5678"}, "198.51.100.1"},
		{"IPv6 with port", "10.1.2.3:80", xff, []string{"[2001:db8::1]:5678"}, "2001:db8::1"},
		{"IPv6 in brackets", "10.1.2.3:80", xff, []string{"[2001:db8::1]"}, "2001:db8::1"},
		{"IPv6 bare", "10.1.2.3:80", xff, []string{" \t2001:db8::1 "}, "2001:db8::1"},
		{"junk after brackets", "10.1.2.3:80", xff, []string{"[2001:db8::1]x"}, "10.1.2.3"},
		{"no end of brackets", "10.1.2.3:80", xff, []string{"[2001:db8::1"}, "10.1.2.3"},
		{"mapped", "10.1.2.3:80", xff, []string{"::ffff:198.51.100.1"}, "198.51.100.1"},
		{"mapped peer is trusted", "[::ffff:10.1.2.3]:80", xff, []string{"198.51.100.1"}, "198.51.100.1"},
		{"zone", "[fe80::1%eth0]:80", xff, []string{"198.51.100.1"}, "fe80::1"},
		{"zone of a trusted peer", "[fd00::1%eth0]:80", xff, []string{"fe80::2%lo"}, "fe80::2"},
		{"peer without port", "10.1.2.3", xff, []string{"198.51.100.1"}, "198.51.100.1"},
		{"the other header is not believed", "10.1.2.3:80", fwd, []string{"for=198.51.100.1"}, "198.51.100.1"},
		{"Forwarded, nobody trusted", "203.0.113.9:1", fwd, []string{"for=198.51.100.1"}, "203.0.113.9"},
		{"Forwarded with all there is", "10.1.2.3:80", fwd, []string{`for=6.6.6.6, For = "[2001:db8::1]:5678" ; proto=https;by="_x";; host="a,b;\"c"`}, "2001:db8::1"},
		{"Forwarded, two lines", "10.1.2.3:80", fwd, []string{`for=198.51.100.1`, `for=192.0.2.7, for="10.2.2.2:99"`}, "198.51.100.1"},
		{"Forwarded, quote of the caller", "10.1.2.3:80", fwd, []string{`for="6.6.6.6, for=198.51.100.1`}, "198.51.100.1"},
		{"Forwarded, quote and backslash of the caller", "10.1.2.3:80", fwd, []string{`for=6.6.6.6;x="\, for="[2001:db8::1]:1"`}, "2001:db8::1"},
		{"Forwarded, hidden", "10.1.2.3:80", fwd, []string{"for=6.6.6.6, for=_secret"}, "10.1.2.3"},
		{"Forwarded, unknown", "10.1.2.3:80", fwd, []string{"for=6.6.6.6, for=unknown"}, "10.1.2.3"},
		{"Forwarded, no for", "10.1.2.3:80", fwd, []string{"for=6.6.6.6, proto=https"}, "10.1.2.3"},
		{"Forwarded, for twice", "10.1.2.3:80", fwd, []string{"for=6.6.6.6;for=7.7.7.7"}, "10.1.2.3"},
		{"Forwarded, no pair", "10.1.2.3:80", fwd, []string{"for=6.6.6.6;x"}, "10.1.2.3"},
		{"Forwarded, no name", "10.1.2.3:80", fwd, []string{"for=6.6.6.6;=x"}, "10.1.2.3"},
		{"Forwarded, junk after a quote", "10.1.2.3:80", fwd, []string{`for="6.6.6.6"x`}, "10.1.2.3"},
		{"Forwarded, a quote that never ends", "10.1.2.3:80", fwd, []string{`for="6.6.6.6`}, "10.1.2.3"},
		{"Forwarded, a quote inside", "10.1.2.3:80", fwd, []string{`for=6.6.6.6;x=y"z"`}, "10.1.2.3"},
		{"a header of one's own", "10.1.2.3:80", "CF-Connecting-IP", []string{"198.51.100.1"}, "198.51.100.1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newClientIP(t, httplimit.ClientIPConfig{Trusted: proxies, Header: test.header})
			r := from(test.peer, test.header, test.lines...)
			if test.header == fwd { // a field that the proxies do not write
				r.Header.Set(xff, "6.6.6.6")
			}
			addr, err := c.Addr(r)
			if err != nil || addr.String() != test.want {
				t.Errorf("%v, %v, want %s", addr, err, test.want)
			}
		})
	}
}

func TestClientIPKey(t *testing.T) {
	for _, test := range []struct {
		peer string
		bits int
		want string
	}{
		{"198.51.100.1:80", 0, "198.51.100.1"},
		{"[::ffff:198.51.100.1]:80", 0, "198.51.100.1"},
		{"[2001:db8:0:1:2:3:4:5]:80", 0, "2001:db8:0:1::/64"},
		{"[2001:db8:0:1:ffff::]:443", 0, "2001:db8:0:1::/64"},
		{"[2001:db8:0:1ff:2:3:4:5]:80", 56, "2001:db8:0:100::/56"},
		{"[2001:db8::5%eth0]:80", 128, "2001:db8::5/128"},
		{"[2001:db8::5]:80", 1, "::/1"},
	} {
		c := newClientIP(t, httplimit.ClientIPConfig{IPv6Prefix: test.bits})
		if key, err := c.Key(from(test.peer, "X")); err != nil || key != test.want {
			t.Errorf("%s: %q, %v, want %q", test.peer, key, err, test.want)
		}
	}
	for _, peer := range []string{"", "@", "example.com:80", ":80"} {
		_, err := newClientIP(t, httplimit.ClientIPConfig{}).Key(from(peer, "X"))
		if status := new(httplimit.StatusError); !errors.As(err, &status) || status.Status != 500 {
			t.Errorf("peer %q: %v, want a StatusError with 500", peer, err)
		}
	}
}

func TestNewClientIPRefusesWhatCannotWork(t *testing.T) {
	for name, cfg := range map[string]httplimit.ClientIPConfig{
		"everyone":         {Trusted: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}},
		"everyone, IPv6":   {Trusted: []netip.Prefix{netip.MustParsePrefix("::/0")}},
		"everyone, mapped": {Trusted: []netip.Prefix{netip.PrefixFrom(netip.MustParseAddr("::ffff:0.0.0.0"), 96)}},
		"no prefix":        {Trusted: []netip.Prefix{{}}},
		"header":           {Header: "X Forwarded"},
		"bits below 0":     {IPv6Prefix: -1},
		"bits above 128":   {IPv6Prefix: 129},
	} {
		if c, err := httplimit.NewClientIP(cfg); c != nil || !errors.Is(err, headgate.ErrInvalidConfig) {
			t.Errorf("%s: %v, want ErrInvalidConfig", name, err)
		}
	}
	mapped := netip.PrefixFrom(netip.MustParseAddr("::ffff:10.0.0.0"), 104)
	c := newClientIP(t, httplimit.ClientIPConfig{Trusted: []netip.Prefix{mapped}})
	if addr, err := c.Addr(from("10.1.2.3:80", "X-Forwarded-For", "198.51.100.1")); err != nil || addr.String() != "198.51.100.1" {
		t.Errorf("a mapped prefix: %v, %v", addr, err)
	}
}

// FuzzClientIP: whatever a caller sends, the address is the one its proxy appended, in either header, and the peer's own where that is
// no proxy. Whatever a proxy writes, the key is an address or a network.
func FuzzClientIP(f *testing.F) {
	for _, s := range []string{"", "6.6.6.6", `for="`, `for="x\`, `for="[::1]:80", `, `"`, `\`, "10.0.0.1, 10.0.0.2", "[", "%", "\xff"} {
		f.Add(s, s)
	}
	list := newClientIP(f, httplimit.ClientIPConfig{Trusted: proxies})
	forwarded := newClientIP(f, httplimit.ClientIPConfig{Trusted: proxies, Header: "Forwarded"})
	f.Fuzz(func(t *testing.T, sent, more string) {
		for _, test := range []struct {
			client  *httplimit.ClientIP
			request *http.Request
			want    string
		}{
			{list, from("10.0.0.1:80", "X-Forwarded-For", more, sent+", 198.51.100.1"), "198.51.100.1"},
			{list, from("10.0.0.1:80", "X-Forwarded-For", sent, more, "198.51.100.1:99, 192.0.2.7"), "198.51.100.1"},
			{list, from("203.0.113.9:80", "X-Forwarded-For", sent, more), "203.0.113.9"},
			{forwarded, from("10.0.0.1:80", "Forwarded", more, sent+", for=198.51.100.1;proto=https"), "198.51.100.1"},
			{forwarded, from("10.0.0.1:80", "Forwarded", more, sent+`,proto=http;host="a,\"b\\";for="[2001:db8::1]:80"`), "2001:db8::/64"},
			{forwarded, from("203.0.113.9:80", "Forwarded", sent, more), "203.0.113.9"},
		} {
			if key, err := test.client.Key(test.request); err != nil || key != test.want {
				t.Errorf("%q: %q, %v, want %q", test.request.Header, key, err, test.want)
			}
		}
		for _, r := range []*http.Request{from("10.0.0.1:80", "X-Forwarded-For", more, sent), from("10.0.0.1:80", "Forwarded", more, sent)} {
			for _, c := range []*httplimit.ClientIP{list, forwarded} {
				key, err := c.Key(r)
				if err != nil {
					t.Fatal(err)
				}
				addr, errAddr := netip.ParseAddr(key)
				network, errNetwork := netip.ParsePrefix(key)
				if !(errAddr == nil && addr.Is4() || errNetwork == nil && network.Bits() == 64 && network == network.Masked()) {
					t.Errorf("%q is neither an IPv4 address nor a /64", key)
				}
			}
		}
	})
}
