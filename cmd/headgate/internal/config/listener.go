package config

import (
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// keyPair reads {cert, key}, both required.
func (d *decoder) keyPair(n *yaml.Node, path string) *KeyPair {
	p := new(KeyPair)
	d.object(n, path,
		field{name: "cert", example: `/etc/headgate/tls.crt`, read: func(v *yaml.Node) { d.filePath(v, path+".cert", &p.Cert) }},
		field{name: "key", example: `/etc/headgate/tls.key`, read: func(v *yaml.Node) { d.filePath(v, path+".key", &p.Key) }})
	return p
}

// filePath reads the path of a file, which is not opened here.
func (d *decoder) filePath(n *yaml.Node, path string, to *string) {
	d.word(n, path, "the path of a PEM file", to)
}

// redisTLS reads whom connections to Redis believe and what they show.
func (d *decoder) redisTLS(n *yaml.Node, path string, t *RedisTLS) {
	d.object(n, path,
		field{name: "ca", read: func(v *yaml.Node) { d.filePath(v, path+".ca", &t.CA) }},
		field{name: "cert", read: func(v *yaml.Node) { d.filePath(v, path+".cert", &t.Pair.Cert) }},
		field{name: "key", read: func(v *yaml.Node) { d.filePath(v, path+".key", &t.Pair.Key) }})
	if n.Kind == yaml.MappingNode && (t.Pair.Cert == "") != (t.Pair.Key == "") {
		d.fault(n.Line, "%s has one of cert and key, want both or neither", path)
	}
}

// checkRedis looks at what the keys of the store say together.
func (d *decoder) checkRedis(n *yaml.Node, path string, r *Redis) {
	if len(r.URL.Addrs) == 0 { // that is a problem of its own
		return
	}
	if r.TLS != (RedisTLS{}) && !r.URL.TLS {
		d.fault(n.Line, "%s.tls has no use with a URL that does not ask for TLS, want rediss in place of redis", path)
	}
	if (r.SentinelUser != "" || r.SentinelPassword != "") && r.URL.Mode != Sentinel {
		d.fault(n.Line, "%s.sentinel_user and sentinel_password have no use without sentinels, want a URL of redis+sentinel", path)
	}
}

// secret reads a user or password. It does not repeat what it read.
func (d *decoder) secret(n *yaml.Node, path string, to *string) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		d.fault(n.Line, "%s is not a text, want one in quotes", path)
		return
	}
	*to = n.Value
}

// sizeUnits are what may follow a number of bytes.
var sizeUnits = []struct {
	suffix string
	bytes  int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B", 1}}

// size reads a number of bytes from low to high.
func (d *decoder) size(n *yaml.Node, path string, low, high int64, to *int64) {
	want := fmt.Sprintf("a size from %s to %s, such as 10MiB", sizeText(low), sizeText(high))
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" && n.ShortTag() != "!!int" {
		d.fault(n.Line, "%s is %s, want %s", path, describe(n), want)
		return
	}
	v, ok := parseSize(n.Value)
	if !ok || v < low || v > high {
		d.fault(n.Line, "%s is %s, want %s", path, quote(n.Value), want)
		return
	}
	*to = v
}

func parseSize(s string) (int64, bool) {
	factor := int64(1)
	for _, u := range sizeUnits {
		if digits, found := strings.CutSuffix(s, u.suffix); found {
			s, factor = digits, u.bytes
			break
		}
	}
	v, err := strconv.ParseUint(s, 10, 63)
	if err != nil || v > uint64(math.MaxInt64/factor) {
		return 0, false
	}
	return int64(v) * factor, true
}

// sizeText is a size in its largest whole unit.
func sizeText(v int64) string {
	for i := len(sizeUnits) - 2; i >= 0; i-- {
		if u := sizeUnits[i]; v >= u.bytes && v%u.bytes == 0 {
			return strconv.FormatInt(v/u.bytes, 10) + u.suffix
		}
	}
	return strconv.FormatInt(v, 10) + "B"
}

// origins reads whose pages may read the gateway's own answers.
func (d *decoder) origins(n *yaml.Node, path string, r *Route) {
	const want = `an origin such as https://app.example.com, or "*" alone`
	d.list(n, path, "a list of origins such as [https://app.example.com]", func(item *yaml.Node) {
		s, ok := d.str(item, path+"[]", want)
		if !ok {
			return
		}
		if !validOrigin(s) || s == "*" && len(n.Content) > 1 {
			d.fault(item.Line, "%s[] is %s, want %s", path, quote(s), want)
			return
		}
		r.CORSOrigins = append(r.CORSOrigins, s)
	})
}

// validOrigin says whether s is an origin as browsers write it.
func validOrigin(s string) bool {
	if s == "*" {
		return true
	}
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && s == u.Scheme+"://"+strings.ToLower(u.Host)
}
