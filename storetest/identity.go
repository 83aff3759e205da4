package storetest

import (
	"strings"
	"testing"

	"github.com/headgate/headgate"
)

// testKeys: two different keys never share a counter, whatever bytes they hold. Every key has one token, of its own.
func testKeys(t *testing.T, store headgate.Store) {
	prefix := newKey(t)
	long := strings.Repeat("k", headgate.MaxKey-len(prefix)-1)
	keys := []string{
		"", "a", "ab", "abc", "A", " ", "  ", "\x00", "\x00\x00", "a\x00", "\x00a", "\xff", "\xff\xfe", "\xc3\x28", "h\u00e9", "he\u0301",
		"\u4e16\u754c", "{a}", "{a", "a}", "{}", "{b}{a}", ":", "a:b", "a::b", "=", "a=1/s", "a\x1f", "a\n", "a\r\n", "\"", "'", "\\", "%", "*",
		"[a]", "?", "#", "0", "00", "-1", "nil", long, long + "x", long[1:],
	}
	each(t, store, 1, func(t *testing.T, s subject) {
		for _, key := range keys {
			s.of(prefix+key).allowed(t, 1, 0)
		}
		for _, key := range keys {
			s.of(prefix+key).denied(t, 1, 0)
		}
	})
}

// testLimitIdentity: two different limits never share a counter, and neither do a key and a name that look like others once joined.
func testLimitIdentity(t *testing.T, store headgate.Store) {
	key := newKey(t)
	named := func(name string) headgate.Limit {
		return headgate.Limit{Name: name, Count: 1, Period: headgate.MaxPeriod}
	}
	type owner struct {
		key   string
		limit headgate.Limit
	}
	owners := []owner{
		{key + "a", named("bc")}, {key + "ab", named("c")}, {key, named("abc")}, {key + "abc", named("=1/8784h")},
		{key, named("1/8784h")}, {key, named("=1/8784h")}, {key, named(" ")}, {key, named("  ")}, {key, named("ABC")},
		{key, headgate.Limit{Count: 1, Period: headgate.MaxPeriod}},
		{key, headgate.Limit{Count: 1, Period: headgate.MaxPeriod, Burst: 1}},
		{key, headgate.Limit{Count: 2, Period: headgate.MaxPeriod, Burst: 1}},
		{key, headgate.Limit{Count: 1, Period: headgate.MaxPeriod / 2}},
	}
	for _, a := range algorithms[1:] {
		limit := named("abc")
		limit.Algorithm = a
		owners = append(owners, owner{key, limit})
		limit.Name = ""
		owners = append(owners, owner{key, limit})
	}
	for _, o := range owners {
		subject{store, o.key, o.limit}.allowed(t, 1, 0)
	}
	for _, o := range owners {
		subject{store, o.key, o.limit}.denied(t, 1, 0)
	}
}

// testLimitChange: a limit with a name keeps what keys have used when its numbers change.
func testLimitChange(t *testing.T, store headgate.Store) {
	each(t, store, 10, func(t *testing.T, s subject) {
		s.limit.Name = "plan"
		s.allowed(t, 6, 4)
		raised := s
		raised.limit.Count = 20
		raised.left(t, 14)
		raised.allowed(t, 2, 12)
		s.left(t, 2)
		cut := s
		cut.limit.Count = 5
		if d := cut.take(t, 5); d.Allowed || d.RetryAfter == headgate.Never || d.RetryAfter > 2*cut.limit.Period {
			t.Errorf("%+v after a cut, want denied for at most two periods", d)
		}
		none := s
		none.limit.Count = 0
		if d := none.denied(t, 1, 0); d.RetryAfter != headgate.Never {
			t.Errorf("%+v under a limit of nothing, want Never", d)
		}
		raised.left(t, 12)
	})
}
