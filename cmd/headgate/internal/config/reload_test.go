package config_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/gatetest"
	"github.com/headgate/headgate/cmd/headgate/internal/watch"
)

// fileOf is a configuration with one limit.
func fileOf(limit string) string {
	return fmt.Sprintf("identity: {anonymous: share}\nroutes: [{path: /, upstream: \"http://127.0.0.1:1\", limits: [%q]}]\n", limit)
}

// A reloading is a file and what follows it, in a bubble of its own time.
type reloading struct {
	t    *testing.T
	path string
	r    *config.Reloader
	log  gatetest.Log

	mu      sync.Mutex
	applied []string // the limit of each configuration that was put in force
	refuse  error    // of apply
}

func (s *reloading) apply(c *config.Config) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse == nil {
		s.applied = append(s.applied, c.Routes[0].Limits[0].String())
	}
	return s.refuse
}

func (s *reloading) setRefuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = err
}

func reload(t *testing.T, story func(*reloading)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &reloading{t: t, path: filepath.Join(t.TempDir(), "c.yaml")}
		s.write(fileOf("1/s"))
		var err error
		if _, s.r, err = config.LoadToReload(s.path, watch.Interval, slog.New(slog.NewTextHandler(&s.log, nil))); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go s.r.Run(ctx, s.apply)
		synctest.Wait()
		story(s)
	})
}

func (s *reloading) write(text string) {
	s.t.Helper()
	if err := os.WriteFile(s.path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// settle gives the reloader the time to see what was written.
func (s *reloading) settle() {
	time.Sleep(3 * watch.Interval)
	synctest.Wait()
}

// want checks the number of the version, how often a reload failed, and what is said of it.
func (s *reloading) want(number, failures int64, lastError string, applied ...string) {
	s.t.Helper()
	v := s.r.Version()
	s.mu.Lock()
	defer s.mu.Unlock()
	if v.Number != number || v.Failures != failures || (lastError == "") != (v.LastError == "") || !strings.Contains(v.LastError, lastError) ||
		(v.LastError == "") != v.ErrorAt.IsZero() || strings.Join(applied, " ") != strings.Join(s.applied, " ") {
		s.t.Errorf("%+v, applied %q; want version %d, %d failures, error %q, applied %q", v, s.applied, number, failures, lastError, applied)
	}
}

func TestReload(t *testing.T) {
	reload(t, func(s *reloading) {
		s.settle()
		s.want(1, 0, "")
		first := s.r.Version()
		s.write(fileOf("2/s"))
		s.settle()
		s.want(2, 0, "", "2/s")
		if v := s.r.Version(); v.Hash == first.Hash || v.Hash != watch.Read(s.path).Hash || !v.Since.After(first.Since) {
			t.Errorf("%+v after %+v", v, first)
		}
		s.write(fileOf("2/s")) // the same again
		s.settle()
		s.r.Reload()
		s.settle()
		s.want(2, 0, "", "2/s")
	})
}

// What is wrong stays out, the log says where it is wrong, and what is right comes into force whenever it comes.
func TestReloadOfAFileThatIsWrong(t *testing.T) {
	reload(t, func(s *reloading) {
		s.write(fileOf("2/fortnight"))
		s.settle()
		s.want(1, 1, s.path+":2: routes[].limits[]: invalid limit")
		if line := s.path + ":2: "; !strings.Contains(s.log.String(), line) || !strings.Contains(s.log.String(), "running one stays") {
			t.Errorf("the log lacks %s:\n%s", line, s.log.String())
		}
		s.settle()
		s.want(1, 1, "fortnight") // it is not tried again and again
		s.write(fileOf("1/s"))    // what is in force
		s.settle()
		s.want(1, 1, "")
		s.write("")
		s.settle()
		s.want(1, 2, "the file is empty")
		s.write(fileOf("3/s"))
		s.settle()
		s.want(2, 2, "", "3/s")
	})
}

func TestReloadOfAFileThatIsGone(t *testing.T) {
	reload(t, func(s *reloading) {
		if err := os.Remove(s.path); err != nil {
			t.Fatal(err)
		}
		s.settle()
		s.want(1, 1, "cannot be read")
		s.write(fileOf("2/s"))
		s.settle()
		s.want(2, 1, "", "2/s")
	})
}

// What is refused by those who would put it in force is not in force.
func TestReloadThatIsRefused(t *testing.T) {
	reload(t, func(s *reloading) {
		s.setRefuse(errors.New("listen cannot change"))
		s.write(fileOf("2/s"))
		s.settle()
		s.want(1, 1, "listen cannot change")
		s.setRefuse(nil)
		s.r.Reload()
		s.settle()
		s.want(2, 1, "", "2/s")
	})
}

func TestManyProblemsAreFewLines(t *testing.T) {
	reload(t, func(s *reloading) {
		s.write("unknown: 1\nroutes: [" + strings.Repeat("{}, ", 100) + "]\n")
		s.settle()
		if n := strings.Count(s.log.String(), "\n"); n > 12 {
			t.Errorf("%d lines for one file", n)
		}
	})
}

func TestFixed(t *testing.T) {
	const base = `
listen: 127.0.0.1:8080
tls: {cert: a, key: b}
max_header: 8KiB
admin: 127.0.0.1:9090
store: {redis: {url: "redis://127.0.0.1", replicas: 2}}
identity: {anonymous: share}
routes: [{path: /, upstream: "http://127.0.0.1:1", limits: ["1/s"], on_store_error: open}]
`
	parse := func(text string) *config.Config {
		t.Helper()
		c, err := config.Parse("c", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, tt := range []struct{ from, to, want string }{
		{"1/s", "2/s", ""},
		{"replicas: 2", "replicas: 3", ""},
		{"127.0.0.1:8080", "127.0.0.1:8081", "c:2: listen"},
		{"key: b", "key: c", "c:3: tls"},
		{"tls: {cert: a, key: b}", "h2c: true", "c:1: tls c:3: h2c"},
		{"8KiB", "9KiB", "c:4: max_header"},
		{"127.0.0.1:9090", "127.0.0.1:9091", "c:5: admin"},
		{"url: \"redis://127.0.0.1\"", "url: \"redis://127.0.0.2\"", "c:6: store"},
		{"replicas: 2", "prefix: other", "c:6: store"},
		{"replicas: 2}", "replicas: 2}, denial_cache: {}", "c:6: store"},
		{"replicas: 2}", "replicas: 2}, lease: {lifetime: 2s}", "c:6: store"},
		{`store: {redis: {url: "redis://127.0.0.1", replicas: 2}}`, "", "c:1: store"},
	} {
		var got []string
		for _, p := range config.Fixed(parse(base), parse(strings.Replace(base, tt.from, tt.to, 1))) {
			key, _, _ := strings.Cut(p.String(), " differs")
			got = append(got, key)
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%s to %s: %q, want %q", tt.from, tt.to, s, tt.want)
		}
	}
}
