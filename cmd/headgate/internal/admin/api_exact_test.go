package admin_test

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/gatetest"
	"github.com/headgate/headgate/redisstore"
	"github.com/headgate/headgate/redisstore/redistest"
)

// Of 200 takes at once, exactly as many are allowed as there are tokens.
func TestExact(t *testing.T) {
	s := start(t, file, nil)
	wantExactly(t, []string{s.URL}, 200, 50)
}

// The same over one Redis by two servers.
func TestExactOverRedis(t *testing.T) {
	server := redistest.Start(t)
	var urls []string
	for range 2 {
		store, err := redisstore.New(server.Client(), redisstore.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		urls = append(urls, start(t, file, store).URL)
	}
	wantExactly(t, urls, 200, 50)
}

func wantExactly(t *testing.T, urls []string, takes int, capacity int64) {
	t.Helper()
	const body = `{"charges":[{"key":"k","limit":"50/day fixed-window"},{"key":"all","limit":"60/day fixed-window"}]}`
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 50, MaxIdleConnsPerHost: 50}, Timeout: gatetest.Patience}
	defer client.CloseIdleConnections()
	var allowed atomic.Int64
	var under sync.WaitGroup
	for i := range takes {
		under.Go(func() {
			resp, err := client.Post(urls[i%len(urls)]+"/v1/take", "application/json", strings.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = resp.Body.Close() }()
			var d decision
			if !decodeBody(t, resp, &d) {
				return
			}
			if d.Allowed {
				allowed.Add(1)
			}
		})
	}
	under.Wait()
	if allowed.Load() != capacity {
		t.Errorf("%d of %d takes were allowed, want %d", allowed.Load(), takes, capacity)
	}
}
