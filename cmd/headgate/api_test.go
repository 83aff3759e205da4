package main_test

import (
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/gatetest"
	"github.com/headgate/headgate/redisstore/redistest"
)

// askAPI sends a request to the decision API of a process.
func askAPI(t *testing.T, addr, path, token, body string) (int, string) {
	t.Helper()
	resp, text := gatetest.Caller{}.Send(t, http.MethodPost, "http://"+addr+path, strings.NewReader(body), func(r *http.Request) {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+token)
	})
	return resp.StatusCode, text
}

// A fleet has one budget, whether its gateways are asked for a decision by API or by a request, and whichever of them. A token is
// replaced without a restart.
func TestDecisionAPI(t *testing.T) {
	server := redistest.Start(t)
	text := func(admin, token string) string {
		fleet := strings.NewReplacer("REDIS", server.URL(), "TIMEOUT", "10s", "LIMIT", "3/hour", "UPSTREAM", "http://127.0.0.1:1").Replace(fleetFile)
		return "admin: " + admin + "\napi: {token_sha256: \"" + gatetest.Digest(token) + "\"}\n" + fleet
	}
	one, two := gatetest.FreeAddr(t), gatetest.FreeAddr(t)
	file := write(t, "one.yaml", text(one, "old"))
	first := serve(t, "--config", file)
	second := serve(t, "--config", write(t, "two.yaml", text(two, "old")))
	const take = `{"tenant":"acme","route":"/any"}`
	if status, body := askAPI(t, one, "/v1/take", "old", take); status != 200 || !strings.Contains(body, `"remaining":2`) {
		t.Errorf("first: %d %s", status, body)
	}
	if resp, _ := get(t, second.url, "acme-key"); resp.StatusCode != 502 || !strings.Contains(resp.Header.Get("RateLimit"), ";r=1;") {
		t.Errorf("a request: %d %v, want the upstream to be missing, and one left", resp.StatusCode, resp.Header)
	}
	if status, body := askAPI(t, two, "/v1/take", "old", take); status != 200 || !strings.Contains(body, `"remaining":0`) {
		t.Errorf("third: %d %s", status, body)
	}
	if status, body := askAPI(t, one, "/v1/take", "old", take); status != 200 || !strings.Contains(body, `"allowed":false`) {
		t.Errorf("fourth: %d %s", status, body)
	}
	if status, _ := askAPI(t, two, "/v1/reset", "old", take); status != 200 {
		t.Errorf("reset: %d", status)
	}
	if status, body := askAPI(t, one, "/v1/peek", "old", take); status != 200 || !strings.Contains(body, `"remaining":3`) {
		t.Errorf("after the reset: %d %s", status, body)
	}
	if err := os.WriteFile(file, []byte(text(one, "new")), 0o600); err != nil {
		t.Fatal(err)
	}
	first.signal(syscall.SIGHUP)
	gatetest.Await(t, "the new token to be taken", func() bool { status, _ := askAPI(t, one, "/v1/peek", "new", take); return status == 200 })
	if status, _ := askAPI(t, one, "/v1/peek", "old", take); status != 401 {
		t.Errorf("the old token: %d, want 401", status)
	}
}

// Without a token in the configuration, the log says what that means.
func TestDecisionAPIWithoutToken(t *testing.T) {
	fleet := strings.NewReplacer("REDIS", "redis://127.0.0.1:1", "TIMEOUT", "1s", "LIMIT", "3/hour", "UPSTREAM", "http://127.0.0.1:1").Replace(fleetFile)
	local, wide := gatetest.FreeAddr(t), gatetest.FreeAddr(t)
	wide = "0.0.0.0" + wide[strings.LastIndexByte(wide, ':'):]
	open := serve(t, "--config", write(t, "open.yaml", "admin: "+local+"\n"+fleet))
	shut := serve(t, "--config", write(t, "shut.yaml", "admin: "+wide+"\n"+fleet))
	const charge = `{"charges":[{"key":"k","limit":"1/hour"}],"on_store_error":"open"}`
	if status, body := askAPI(t, local, "/v1/take", "", charge); status != 200 || !strings.Contains(open.stderr.String(), "everybody on this host") {
		t.Errorf("loopback: %d %s, log %s", status, body, open.stderr.String())
	}
	if status, _ := askAPI(t, strings.Replace(wide, "0.0.0.0", "127.0.0.1", 1), "/v1/take", "", charge); status != 403 || !strings.Contains(shut.stderr.String(), "is off") {
		t.Errorf("all addresses: %d, log %s", status, shut.stderr.String())
	}
}
