package gateway_test

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Bodies that are passed on at the same time keep what is theirs: no two of them share a buffer.
func TestBodiesDoNotMix(t *testing.T) {
	const callers, rounds = 16, 8
	body := func(of string) string { return strings.Repeat(of+" ", 20_000) }
	url := serve(t, strings.ReplaceAll(file, "1000/hour", "100000/hour"), nil, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, body(r.URL.Query().Get("of")))
	})
	var group sync.WaitGroup
	for caller := range callers {
		group.Go(func() {
			for range rounds {
				of := strconv.Itoa(caller)
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/?of="+of, nil)
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set("X-API-Key", "acme-key")
				resp, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				got, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if err != nil || string(got) != body(of) {
					t.Errorf("caller %s got %d bytes (%v) that are not its own", of, len(got), err)
				}
			}
		})
	}
	group.Wait()
}
