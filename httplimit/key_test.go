package httplimit_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

func headerKey(tb testing.TB, name string) func(*http.Request) (string, error) {
	tb.Helper()
	key, err := httplimit.HeaderKey(name)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

func TestHeaderKey(t *testing.T) {
	key := headerKey(t, "x-tenant")
	ask := func(values ...string) (string, error) { return key(from("203.0.113.9:1", "X-Tenant", values...)) }
	acme, err := ask("acme")
	if err != nil || len(acme) != 43 || strings.Contains(acme, "acme") {
		t.Errorf("%q, %v", acme, err)
	}
	if other, _ := ask("acme "); other == acme {
		t.Error("two values have one key")
	}
	if other, _ := headerKey(t, "X-User")(from("203.0.113.9:1", "X-User", "acme")); other == acme {
		t.Error("two fields have one key")
	}
	for name, test := range map[string]struct {
		values []string
		status int
	}{
		"missing": {nil, 401}, "empty": {[]string{""}, 401}, "twice": {[]string{"acme", "acme"}, 400}, "twice empty": {[]string{"", ""}, 400},
	} {
		_, err := ask(test.values...)
		status := new(httplimit.StatusError)
		if !errors.As(err, &status) || status.Status != test.status || (test.status == 401) != errors.Is(err, httplimit.ErrNoIdentity) {
			t.Errorf("%s: %v, want status %d", name, err, test.status)
		}
	}
	for _, name := range []string{"", "X Tenant", "X-Tenant:", "X-Ténant", "a\n"} {
		if _, err := httplimit.HeaderKey(name); !errors.Is(err, headgate.ErrInvalidConfig) {
			t.Errorf("HeaderKey(%q): %v, want ErrInvalidConfig", name, err)
		}
	}
}

func TestJoinKey(t *testing.T) {
	seen := map[string][]string{}
	for _, parts := range [][]string{
		nil, {""}, {"", ""}, {"a"}, {"a", ""}, {"", "a"}, {"a", "bc"}, {"ab", "c"}, {"abc"}, {"a", "b", "c"}, {"a\x00b"}, {"a", "b"}, {"a|b"},
		{strings.Repeat("x", 300)}, {strings.Repeat("x", 299), "x"}, {"\x00\x00\x00\x00\x00\x00\x00\x00"},
	} {
		key := httplimit.JoinKey(parts...)
		if earlier, found := seen[key]; found || len(key) != 43 {
			t.Errorf("%q and %q have one key %q", parts, earlier, key)
		}
		seen[key] = parts
	}
}

func TestComposeKeys(t *testing.T) {
	path := func(r *http.Request) (string, error) { return r.URL.Path, nil }
	key, err := httplimit.ComposeKeys(headerKey(t, "X-Tenant"), path)
	if err != nil {
		t.Fatal(err)
	}
	tenant, _ := headerKey(t, "X-Tenant")(from("203.0.113.9:1", "X-Tenant", "acme"))
	if got, err := key(from("203.0.113.9:1", "X-Tenant", "acme")); err != nil || got != httplimit.JoinKey(tenant, "/") {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := key(get()); !errors.Is(err, httplimit.ErrNoIdentity) {
		t.Errorf("%v, want the error of the part", err)
	}
	if _, err := httplimit.ComposeKeys(); !errors.Is(err, headgate.ErrInvalidConfig) {
		t.Errorf("none: %v", err)
	}
	if _, err := httplimit.ComposeKeys(path, nil); !errors.Is(err, headgate.ErrInvalidConfig) {
		t.Errorf("nil: %v", err)
	}
}

// FuzzHeaderKey: keys of two values are equal only if the values are, are keys that a charge may have, and do not show the value; and
// two ways to cut a text into two parts are two keys.
func FuzzHeaderKey(f *testing.F) {
	f.Add("acme", "acme ", 1, 2)
	f.Add("\x00", "", 0, 1)
	f.Add(strings.Repeat("k", 2000), strings.Repeat("k", 2001), 3, 1999)
	key := headerKey(f, "X-Tenant")
	f.Fuzz(func(t *testing.T, a, b string, cutA, cutB int) {
		keyA, errA := key(from("203.0.113.9:1", "X-Tenant", a))
		keyB, errB := key(from("203.0.113.9:1", "X-Tenant", b))
		if (errA != nil) != (a == "") || (errB != nil) != (b == "") {
			t.Fatalf("%v, %v", errA, errB)
		}
		if errA == nil && errB == nil && (keyA == keyB) != (a == b) {
			t.Errorf("%q and %q: %q and %q", a, b, keyA, keyB)
		}
		if errA == nil {
			if len(keyA) != 43 || len(a) > 8 && strings.Contains(keyA, a) {
				t.Errorf("%q: key %q", a, keyA)
			}
			if err := (headgate.Charge{Key: keyA, Limit: headgate.PerSecond(1)}).Validate(); err != nil {
				t.Error(err)
			}
		}
		at := func(n int) int { return int(uint(n) % uint(len(a)+1)) }
		first, second := []string{a[:at(cutA)], a[at(cutA):]}, []string{a[:at(cutB)], a[at(cutB):]}
		if (httplimit.JoinKey(first...) == httplimit.JoinKey(second...)) != slices.Equal(first, second) {
			t.Errorf("%q and %q have one key", first, second)
		}
	})
}
