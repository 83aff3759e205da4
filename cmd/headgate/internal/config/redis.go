package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// RedisMode says how the servers behind a RedisURL form one store.
type RedisMode uint8

const (
	// Standalone is one server. The zero value.
	Standalone RedisMode = iota
	// Sentinel is a primary that the sentinels at Addrs know.
	Sentinel
	// Cluster is a Redis Cluster, some of whose nodes are at Addrs.
	Cluster
)

// A RedisURL says where the shared store is. Its String keeps the password to itself.
type RedisURL struct {
	Mode     RedisMode
	Addrs    []string // host:port of the server, of the sentinels or of some nodes of the cluster
	Master   string   // Sentinel: the name of the primary
	User     string   // ACL user; "" = default
	Password string
	DB       int
	TLS      bool
}

// String returns the mode and the addresses.
func (u RedisURL) String() string {
	mode := [...]string{"redis", "redis sentinel", "redis cluster"}[u.Mode]
	return mode + " at " + strings.Join(u.Addrs, ",")
}

// RedisForms are the forms that ParseRedisURL reads, for help texts. With an "s" after redis the connections use TLS.
const RedisForms = "redis://[user:pass@]host[:port][/DB], redis+sentinel://[user:pass@]host:port[,host:port]/MASTER[/DB] or " +
	"redis+cluster://[user:pass@]host:port[,host:port] (rediss for TLS)"

// ParseRedisURL reads one of RedisForms. Its errors do not repeat the URL, which may hold a password.
func ParseRedisURL(s string) (RedisURL, error) {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		return RedisURL{}, errors.New("no scheme")
	}
	var u RedisURL
	kind, extra, _ := strings.Cut(scheme, "+")
	switch {
	case kind != "redis" && kind != "rediss":
		return RedisURL{}, fmt.Errorf("unknown scheme %s", quote(scheme))
	case extra == "sentinel":
		u.Mode = Sentinel
	case extra == "cluster":
		u.Mode = Cluster
	case scheme != kind:
		return RedisURL{}, fmt.Errorf("unknown scheme %s", quote(scheme))
	}
	u.TLS = kind == "rediss"
	if strings.ContainsAny(rest, "?#") {
		return RedisURL{}, errors.New("a query or fragment, of which none is known (a ? or # in a password is written %3F or %23)")
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		if err := u.login(rest[:at]); err != nil {
			return RedisURL{}, err
		}
		rest = rest[at+1:]
	}
	hosts, path, _ := strings.Cut(rest, "/")
	if err := u.hosts(hosts); err != nil {
		return RedisURL{}, err
	}
	return u, u.path(path)
}

func (u *RedisURL) login(s string) error {
	user, password, _ := strings.Cut(s, ":")
	var err1, err2 error
	u.User, err1 = url.PathUnescape(user)
	u.Password, err2 = url.PathUnescape(password)
	if err1 != nil || err2 != nil {
		return errors.New("a % in the user or password that encodes nothing (a plain % is written %25)")
	}
	return nil
}

// hosts reads host:port[,host:port]; without a port it is the usual one.
func (u *RedisURL) hosts(s string) error {
	port := "6379"
	if u.Mode == Sentinel {
		port = "26379"
	}
	for h := range strings.SplitSeq(s, ",") {
		addr := h
		if !strings.Contains(h[strings.LastIndexByte(h, ']')+1:], ":") {
			addr = h + ":" + port
		}
		if err := checkAddr(addr, false); err != nil {
			return err
		}
		u.Addrs = append(u.Addrs, addr)
	}
	if u.Mode == Standalone && len(u.Addrs) != 1 {
		return errors.New("several servers, which only redis+sentinel and redis+cluster have")
	}
	return nil
}

// path reads what follows the hosts: [MASTER][/DB].
func (u *RedisURL) path(s string) error {
	db := s
	switch u.Mode {
	case Sentinel:
		var err error
		var name string
		name, db, _ = strings.Cut(s, "/")
		if u.Master, err = url.PathUnescape(name); err != nil || u.Master == "" {
			return errors.New("no name of the primary after the sentinels, such as /mymaster")
		}
	case Cluster:
		if s != "" {
			return errors.New("something after the nodes, but a cluster has only database 0")
		}
	}
	if db == "" {
		return nil
	}
	n, err := strconv.ParseUint(db, 10, 16)
	if err != nil {
		return fmt.Errorf("database %s, which is not a number", quote(db))
	}
	u.DB = int(n)
	return nil
}

// checkAddr says what is wrong with host:port. A listener may leave the host out, or ask for any port by 0.
func checkAddr(addr string, listen bool) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%s is not host:port", quote(addr))
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 && !listen {
		return fmt.Errorf("%s has no port that is a number up to 65535", quote(addr))
	}
	if host == "" && !listen || strings.ContainsAny(host, " \t@/") {
		return fmt.Errorf("%s has no host", quote(addr))
	}
	return nil
}

// CheckListen says what is wrong with an address to listen on, such as 127.0.0.1:8080; nil = nothing. Port 0 asks for a free one.
func CheckListen(addr string) error { return checkAddr(addr, true) }
