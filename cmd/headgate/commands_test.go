package main_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/gatetest"
	"github.com/headgate/headgate/redisstore/redistest"
)

func TestCheck(t *testing.T) {
	const example = "../../headgate.example.yaml"
	code, stdout, stderr := run(t, "check", example)
	if code != 0 || stdout != example+": ok\n" || stderr != "" {
		t.Errorf("example: %d %q %q, want 0 and ok", code, stdout, stderr)
	}
	bad := write(t, "bad.yaml", "listen: 127.0.0.1:8080\nidentity: {anonymous: share}\nroutes:\n"+
		"  - {path: /, upstream: \"http://127.0.0.1:1\", limits: [\"10/fortnight\"]}\nplan: {}\n")
	code, stdout, stderr = run(t, "check", bad, example)
	want := bad + `:4: routes[].limits[]: invalid limit: "10/fortnight": period "fortnight" is neither a unit such as s, minute, hour, day nor a duration such as 24h` +
		"\n" + bad + `:5: unknown key "plan", want plans` + "\n"
	if code != 2 || stdout != example+": ok\n" || stderr != want {
		t.Errorf("bad file: %d\n%s%s, want 2\n%s", code, stdout, stderr, want)
	}
	code, stdout, _ = run(t, "check", "--json", bad, example)
	var results []struct {
		File     string
		OK       bool
		Problems []struct{ Line int }
	}
	if err := json.Unmarshal([]byte(stdout), &results); err != nil || code != 2 || len(results) != 2 || results[0].OK || !results[1].OK ||
		len(results[0].Problems) != 2 || results[0].Problems[0].Line != 4 {
		t.Errorf("json: %d %s (%v)", code, stdout, err)
	}
	if code, _, stderr := run(t, "check", "none.yaml"); code != 2 || !strings.HasPrefix(stderr, "none.yaml: cannot be read") {
		t.Errorf("no file: %d %s, want 2", code, stderr)
	}
}

// Each of these exits with 2, and says on stderr what is wrong; nothing is printed on stdout.
func TestWrongUsage(t *testing.T) {
	bad := write(t, "bad.yaml", "routes: []\n")
	take := []string{"take", "--redis", "redis://127.0.0.1:1"}
	with := func(more ...string) []string { return append(append([]string(nil), take...), more...) }
	tests := []struct {
		args []string
		want string
	}{
		{nil, "expected one of"},
		{[]string{"sevre"}, "unexpected argument sevre"},
		{[]string{"serve", "--config", bad}, bad + ":1: routes is an empty list"},
		{[]string{"serve", "--config", "none.yaml"}, "none.yaml: cannot be read"},
		{[]string{"serve", "--listen", "8080"}, "--listen"},
		{[]string{"serve", "--log-level", "loud"}, "--log-level"},
		{[]string{"serve", "--bogus"}, "--bogus"},
		{[]string{"check"}, "<file>"},
		{[]string{"take", "--key", "k", "--limit", "1/s"}, "--redis"},
		{with("--limit", "1/s"), "--key"},
		{with("--key", "k"), "--limit"},
		{with("--key", "k", "--limit", "1/fortnight"), "fortnight"},
		{with("--key", "k", "--limit", "1/s", "--limit", "1/s"), "shares its counter"},
		{with("--key", "", "--limit", "1/s"), "empty key"},
		{with("--key", "k", "--limit", "1/s", "--cost", "-1"), "cost"},
		{with("--key", "k", "--limit", "1/s", "--timeout", "0s"), "--timeout"},
		{with("--key", "k", "--limit", "1/s", "--max-wait", "1s"), "--wait"},
		{[]string{"take", "--redis", "redis://:secret@h?x=1", "--key", "k", "--limit", "1/s"}, "--redis"},
	}
	for _, tt := range tests {
		code, stdout, stderr := run(t, tt.args...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, tt.want) || strings.Contains(stderr, "secret") {
			t.Errorf("%q: %d %q %q, want 2 and %q", tt.args, code, stdout, stderr, tt.want)
		}
	}
}

func TestHelpHasExamples(t *testing.T) {
	for _, args := range [][]string{{}, {"serve"}, {"check"}, {"take"}, {"keygen"}, {"bench"}, {"version"}} {
		code, stdout, stderr := run(t, append(args, "--help")...)
		if code != 0 || stderr != "" || !strings.Contains(stdout, "Examples:") {
			t.Errorf("%q --help: %d %q, want 0 and examples:\n%s", args, code, stderr, stdout)
		}
	}
}

func TestVersion(t *testing.T) {
	if code, stdout, _ := run(t, "version"); code != 0 || !strings.HasPrefix(stdout, "headgate ") || !strings.Contains(stdout, " go1.") {
		t.Errorf("version: %d %q", code, stdout)
	}
	var v struct{ Version, Go, Platform string }
	code, stdout, _ := run(t, "version", "--json")
	if err := json.Unmarshal([]byte(stdout), &v); err != nil || code != 0 || v.Version == "" || v.Go == "" || v.Platform == "" {
		t.Errorf("version --json: %d %s (%v)", code, stdout, err)
	}
}

// What keygen prints goes together, and what it prints for the configuration is accepted there.
func TestKeygen(t *testing.T) {
	code, stdout, _ := run(t, "keygen", "--tenant", "globex", "--plan", "gold")
	if code != 0 {
		t.Fatalf("keygen: %d", code)
	}
	key := regexp.MustCompile(`hg_[A-Za-z0-9_-]{43}`).FindString(stdout)
	if key == "" || !strings.Contains(stdout, gatetest.Digest(key)) {
		t.Errorf("%s\nwant a key and its digest", stdout)
	}
	_, lines, _ := strings.Cut(stdout, "tenants:\n")
	file := write(t, "k.yaml", "plans: {gold: {limits: [\"1/s\"]}}\nroutes: [{path: /, upstream: \"http://127.0.0.1:1\"}]\ntenants:\n"+lines)
	if code, _, stderr := run(t, "check", file); code != 0 || !strings.Contains(lines, "globex") {
		t.Errorf("the lines for the configuration: %d %s", code, stderr)
	}
	if _, again, _ := run(t, "keygen"); strings.Contains(again, key) {
		t.Error("the same key twice")
	}
	var v map[string]string
	_, stdout, _ = run(t, "keygen", "--json")
	if err := json.Unmarshal([]byte(stdout), &v); err != nil || v["tenant"] != "acme" || len(v["api_key_sha256"]) != 64 {
		t.Errorf("keygen --json: %s (%v)", stdout, err)
	}
}

func TestTake(t *testing.T) {
	server := redistest.Start(t)
	take := func(args ...string) (int, string) {
		t.Helper()
		code, stdout, stderr := run(t, append([]string{"take", "--timeout", "10s", "--redis", server.URL()}, args...)...)
		if stderr != "" {
			t.Errorf("take %q: stderr %s", args, stderr)
		}
		return code, stdout
	}
	for i, want := range []int{0, 0, 1} {
		if code, stdout := take("--key", "k", "--limit", "2/hour"); code != want {
			t.Errorf("take %d: %d %s, want %d", i+1, code, stdout, want)
		}
	}
	code, stdout := take("--key", "k", "--limit", "2/hour", "--json")
	var d struct {
		Allowed      bool
		Limit        string
		Remaining    int64
		RetryAfterMS *int64 `json:"retry_after_ms"`
	}
	if err := json.Unmarshal([]byte(stdout), &d); err != nil || code != 1 || d.Allowed || d.Limit != "2/hour" || d.RetryAfterMS == nil || *d.RetryAfterMS < 1 {
		t.Errorf("denied: %d %s (%v)", code, stdout, err)
	}
	if code, stdout := take("--key", "k", "--limit", "2/hour", "--cost", "3"); code != 1 || !strings.Contains(stdout, "retry-after=never") {
		t.Errorf("above the capacity: %d %s, want 1 and never", code, stdout)
	}
	if code, stdout := take("--key", "k", "--limit", "2/hour", "--cost", "0"); code != 0 || !strings.Contains(stdout, "remaining=0") {
		t.Errorf("look: %d %s, want 0", code, stdout)
	}
	if code, _ := take("--key", "k", "--limit", "2/hour", "--prefix", "other:"); code != 0 {
		t.Errorf("other prefix: %d, want 0", code)
	}
	// Two limits are one decision: what the second denies, the first is not charged for.
	take("--key", "two", "--limit", "1/hour")
	if code, _ := take("--key", "two", "--limit", "5/hour", "--limit", "1/hour"); code != 1 {
		t.Errorf("second limit: %d, want 1", code)
	}
	if _, stdout := take("--key", "two", "--limit", "5/hour", "--cost", "0"); !strings.Contains(stdout, "remaining=5") {
		t.Errorf("first limit: %s, want 5 left", stdout)
	}
}

func TestTakeWaits(t *testing.T) {
	server := redistest.Start(t)
	take := []string{"take", "--timeout", "10s", "--redis", server.URL(), "--key", "k", "--limit", "10/s burst 1", "--wait"}
	for range 3 {
		if code, stdout, stderr := run(t, take...); code != 0 || !strings.HasPrefix(stdout, "allowed") {
			t.Errorf("wait: %d %s%s, want 0", code, stdout, stderr)
		}
	}
	slow := []string{"take", "--timeout", "10s", "--redis", server.URL(), "--key", "slow", "--limit", "1/hour"}
	run(t, slow...)
	if code, stdout, _ := run(t, append(slow, "--wait", "--max-wait", "5s")...); code != 1 || !strings.HasPrefix(stdout, "denied") {
		t.Errorf("max-wait: %d %s, want 1", code, stdout)
	}
	if code, stdout, _ := run(t, append(slow, "--wait", "--cost", "2")...); code != 1 || !strings.Contains(stdout, "never") {
		t.Errorf("above the capacity: %d %s, want 1", code, stdout)
	}
}

func TestTakeWithoutStore(t *testing.T) {
	addr := gatetest.FreeAddr(t)
	code, stdout, stderr := run(t, "take", "--redis", "redis://"+addr, "--key", "k", "--limit", "1/s")
	if code != 3 || stdout != "" || strings.Count(stderr, "\n") != 1 || strings.Count(stderr, "headgate: ") != 1 {
		t.Errorf("%d %q %q, want 3 and one line", code, stdout, stderr)
	}
}
