package httplimit

import (
	"net/http"
	"net/netip"
	"strings"
)

// ClientIPConfig configures a [ClientIP]. It is copied. The zero value takes the address of the connection and believes no header.
type ClientIPConfig struct {
	// Trusted are the networks of your own proxies. What such a proxy says about where a request came from is believed. A network of
	// all addresses is invalid: it would believe everyone.
	Trusted []netip.Prefix
	// Header is the field that your proxies append to: "" = X-Forwarded-For; Forwarded (RFC 7239); or another one that holds addresses
	// separated by commas. Exactly one, since a proxy passes on as it came a field that it does not write, whoever wrote it.
	Header string
	// IPv6Prefix is the length in bits of the network that counts as one IPv6 client in [ClientIP.Key]. 0 = 64, what one customer is
	// given at the least; at most 128.
	IPv6Prefix int
}

// A ClientIP finds out the address that a request came from. It is safe for concurrent use.
type ClientIP struct {
	trusted []netip.Prefix
	header  string // canonical
	bits    int
}

// NewClientIP returns a ClientIP, or an error that matches [headgate.ErrInvalidConfig].
func NewClientIP(cfg ClientIPConfig) (*ClientIP, error) {
	c := &ClientIP{header: "X-Forwarded-For", bits: 64}
	for _, p := range cfg.Trusted {
		if !p.IsValid() {
			return nil, invalid("an invalid trusted prefix")
		}
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		if p.Bits() == 0 {
			return nil, invalid("trusted prefix %v holds every address, want the networks of your proxies", p)
		}
		c.trusted = append(c.trusted, p)
	}
	if cfg.Header != "" {
		if strings.ContainsFunc(cfg.Header, notToken) {
			return nil, invalid("header %q, want the name of a field", cfg.Header)
		}
		c.header = http.CanonicalHeaderKey(cfg.Header)
	}
	if cfg.IPv6Prefix < 0 || cfg.IPv6Prefix > 128 {
		return nil, invalid("IPv6Prefix %d, want 0 (= 64) to 128", cfg.IPv6Prefix)
	}
	if cfg.IPv6Prefix != 0 {
		c.bits = cfg.IPv6Prefix
	}
	return c, nil
}

// Key is a key function for [Config]: the address as text, for IPv6 the network of IPv6Prefix bits, such as "2001:db8:0:1::/64".
func (c *ClientIP) Key(r *http.Request) (string, error) {
	addr, err := c.Addr(r)
	if err != nil {
		return "", err
	}
	if addr.Is4() {
		return addr.String(), nil
	}
	network, err := addr.Prefix(c.bits)
	if err != nil {
		return "", err
	}
	return network.String(), nil
}

// Addr returns the address of the caller, without port and zone, and an IPv4 address as such also where it was written as IPv6.
//
// It is that of the connection, unless a trusted proxy made it. Then it is the last one in the header that is not itself trusted, or
// the first of all if they all are. Where a trusted proxy gives something that is no address, such as "unknown", it is that
// proxy's own: those of whom nothing is known are one client.
//
// The error, if the connection has no address (a Unix socket), is a [*StatusError] with 500.
func (c *ClientIP) Addr(r *http.Request) (netip.Addr, error) {
	client, ok := parseAddr(r.RemoteAddr)
	if !ok {
		return netip.Addr{}, &StatusError{Status: http.StatusInternalServerError, Err: ErrNoIdentity}
	}
	lines := r.Header[c.header]
	list := ""
	for c.trusts(client) {
		if list == "" {
			if len(lines) == 0 {
				break
			}
			list, lines = lines[len(lines)-1], lines[:len(lines)-1]
		}
		var hop netip.Addr
		if list, hop, ok = c.cut(list); !ok {
			break
		}
		client = hop
	}
	return client, nil
}

func (c *ClientIP) trusts(addr netip.Addr) bool {
	for _, p := range c.trusted {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// cut takes the last address off a line of the header.
func (c *ClientIP) cut(list string) (rest string, addr netip.Addr, ok bool) {
	if c.header == "Forwarded" {
		rest, element := cutForwarded(list)
		node, ok := forwardedFor(element)
		if !ok {
			return rest, addr, false
		}
		addr, ok = parseAddr(node)
		return rest, addr, ok
	}
	last := list
	if i := strings.LastIndexByte(list, ','); i >= 0 {
		rest, last = list[:i], list[i+1:]
	}
	addr, ok = parseAddr(last)
	return rest, addr, ok
}

// parseAddr reads an address with or without brackets and port.
func parseAddr(s string) (netip.Addr, bool) {
	s = trim(s)
	if inside, ok := strings.CutPrefix(s, "["); ok {
		host, port, closed := strings.Cut(inside, "]")
		if !closed || port != "" && port[0] != ':' {
			return netip.Addr{}, false
		}
		s = host
	} else if host, port, ok := strings.Cut(s, ":"); ok && !strings.Contains(port, ":") {
		s = host
	}
	s, _, _ = strings.Cut(s, "%") // the zone, which names an interface of this machine
	if len(s) > len("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255") {
		return netip.Addr{}, false
	}
	addr, err := netip.ParseAddr(s)
	return addr.Unmap(), err == nil
}

func trim(s string) string { return strings.Trim(s, " \t") }
