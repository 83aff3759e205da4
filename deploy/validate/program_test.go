package validate_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/redisstore/redistest"
)

// patience is how long a busy machine may take.
const patience = time.Minute

// root is the folder of the repository.
const root = "../.."

var binary string // the program, built by the command of the Dockerfile

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "headgate")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary = filepath.Join(dir, "headgate")
	if err := buildAsImage(binary); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// check is headgate check.
func check(t *testing.T, file string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), binary, "check", file).CombinedOutput(); err != nil {
		t.Errorf("headgate check %s: %v\n%s", file, err, out)
	}
}

// serve runs the program until the test ends, and returns where it listens and where its admin pages are.
func serve(t *testing.T, config string) (public, admin string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "headgate.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "serve", "--config", file)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	ended := make(chan struct{})
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended; _ = cmd.Wait() })
	urls := regexp.MustCompile(`http://[^ /\n]+`)
	for public == "" || admin == "" {
		line, err := lines.ReadString('\n')
		if err != nil {
			close(ended)
			_ = cmd.Wait() // after which the log is whole
			t.Fatalf("the program ended: %v\n%s", err, &log)
		}
		switch url := urls.FindString(line); {
		case strings.Contains(line, "/metrics"):
			admin = url
		case strings.Contains(line, "listens on"):
			public = url
		}
	}
	go func() { defer close(ended); _, _ = io.Copy(io.Discard, lines) }()
	return public, admin
}

func get(t *testing.T, url string, header ...string) (status int, body string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// A series is one line of a metrics page.
type series struct {
	name   string // as in the page, with _bucket and the like
	labels map[string]string
	value  string
}

// A metricsPage is what real gateways serve: one in memory and one with Redis, each after requests that were allowed, denied and refused.
type metricsPage struct {
	types  map[string]string // by family: counter, gauge, histogram, summary
	series []series
	err    error
}

// family returns the family that a series of this name belongs to; "" = none.
func (p *metricsPage) family(name string) string {
	if _, ok := p.types[name]; ok {
		return name
	}
	for _, suffix := range []string{"_bucket", "_count", "_sum"} {
		if base, ok := strings.CutSuffix(name, suffix); ok && (p.types[base] == "histogram" || p.types[base] == "summary") {
			return base
		}
	}
	return ""
}

var (
	pageOnce sync.Once
	page     metricsPage
)

func served(t *testing.T) *metricsPage {
	t.Helper()
	pageOnce.Do(func() {
		page.types = make(map[string]string)
		page.err = errors.New("no gateway could be asked")
		text := scrape(t, "", "") + scrape(t, fmt.Sprintf("store: {redis: {url: %q}, denial_cache: {}}", redistest.Start(t).URL()), ", on_store_error: local")
		page.err = page.read(text)
	})
	if page.err != nil {
		t.Fatal(page.err)
	}
	return &page
}

// scrape runs a gateway with the store and returns its metrics after some requests.
func scrape(t *testing.T, store, mode string) string {
	t.Helper()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	t.Cleanup(up.Close)
	digest := sha256.Sum256([]byte("key"))
	public, admin := serve(t, fmt.Sprintf(`
listen: 127.0.0.1:0
admin: localhost:0
%s
plans: {free: {limits: ["2/hour"]}}
tenants: [{name: acme, plan: free, api_key_sha256: %q}]
routes:
  - {path: /, upstream: %[3]q%[4]s}
  - {path: /partner, upstream: %[3]q%[4]s, plan: false, outbound: {limits: ["100/s"]}}
`, store, hex.EncodeToString(digest[:]), up.URL, mode))
	if status, body := get(t, public+"/partner", "X-API-Key", "key"); status != http.StatusOK {
		t.Errorf("outbound: %d %s", status, body)
	}
	for _, want := range []int{200, 200, 429} {
		if status, body := get(t, public, "X-API-Key", "key"); status != want {
			t.Errorf("status %d, want %d: %s", status, want, body)
		}
	}
	if status, _ := get(t, public); status != http.StatusUnauthorized {
		t.Errorf("without a key: %d, want 401", status)
	}
	status, text := get(t, admin+"/metrics")
	if status != http.StatusOK {
		t.Fatalf("metrics: %d %s", status, text)
	}
	if status, _ := get(t, public+"/metrics"); status != http.StatusUnauthorized {
		t.Errorf("metrics on the public listener: %d, want 401 as everything there", status)
	}
	return text
}

var (
	typeLine   = regexp.MustCompile(`^# TYPE (\S+) (\S+)$`)
	seriesLine = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$`)
	labelPair  = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"`)
)

func (p *metricsPage) read(text string) error {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if m := typeLine.FindStringSubmatch(line); m != nil {
			p.types[m[1]] = m[2]
			continue
		}
		if strings.HasPrefix(line, "#") || line == "" {
			continue
		}
		m := seriesLine.FindStringSubmatch(line)
		if m == nil {
			return fmt.Errorf("not a line of a metrics page: %q", line)
		}
		s := series{name: m[1], labels: make(map[string]string), value: m[3]}
		for _, pair := range labelPair.FindAllStringSubmatch(m[2], -1) {
			s.labels[pair[1]] = pair[2]
		}
		p.series = append(p.series, s)
	}
	return nil
}

// knows says what is wrong with a selector of this name and these labels: no gateway serves such a series. Labels that Prometheus itself
// adds are fine.
func (p *metricsPage) knows(name string, labels []string) error {
	if name == "up" {
		return nil
	}
	if p.family(name) == "" {
		return fmt.Errorf("no gateway serves %s", name)
	}
	for _, s := range p.series {
		if s.name != name {
			continue
		}
		for _, label := range labels {
			if _, ok := s.labels[label]; !ok && label != "job" && label != "instance" && label != "__name__" {
				return fmt.Errorf("%s has no label %s", name, label)
			}
		}
		return nil
	}
	return fmt.Errorf("no gateway serves a series of %s", name)
}

// No tenant, key or path of a request is in a page.
func TestNoSeriesIsNamedByACaller(t *testing.T) {
	for _, s := range served(t).series {
		for label, value := range s.labels {
			if strings.Contains(value, "acme") {
				t.Errorf("%s has %s=%q", s.name, label, value)
			}
		}
	}
}
