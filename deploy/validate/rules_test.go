package validate_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

const (
	ruleFile = "../prometheus/headgate.rules.yaml"
	manual   = "../../docs/operations.md"
	step     = 15 * time.Second // between two scrapes, and between two evaluations
)

var promQL = parser.NewParser(parser.Options{})

func rules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile(ruleFile, false, model.LegacyValidation, promQL, slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Fatal(err)
	}
	var list []rulefmt.Rule
	for _, g := range groups.Groups {
		list = append(list, g.Rules...)
	}
	return list
}

// selectors returns what a query reads: by each selector its name and labels.
func selectors(t *testing.T, query string) []*parser.VectorSelector {
	t.Helper()
	expr, err := promQL.ParseExpr(query)
	if err != nil {
		t.Fatalf("%v in %s", err, query)
	}
	var list []*parser.VectorSelector
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok {
			list = append(list, s)
		}
		return nil
	})
	return list
}

// checkQuery holds that gateways serve all that a query reads.
func checkQuery(t *testing.T, where, query string) {
	t.Helper()
	found := selectors(t, query)
	if len(found) == 0 {
		t.Errorf("%s reads nothing", where)
	}
	for _, s := range found {
		var names []string
		for _, m := range s.LabelMatchers {
			names = append(names, m.Name)
		}
		if err := served(t).knows(s.Name, names); err != nil {
			t.Errorf("%s: %v", where, err)
		}
	}
}

func TestRulesReadWhatGatewaysServe(t *testing.T) {
	for _, r := range rules(t) {
		checkQuery(t, r.Alert, r.Expr)
	}
}

// Every alert says what it is about, how grave it is, and where to read on; and there is something to read.
func TestRulesAreExplained(t *testing.T) {
	text, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	headings := make(map[string]bool)
	for _, m := range regexp.MustCompile(`(?m)^#+ (\S+)$`).FindAllStringSubmatch(string(text), -1) {
		headings[strings.ToLower(m[1])] = true
	}
	for _, r := range rules(t) {
		_, anchor, _ := strings.Cut(r.Annotations["runbook_url"], "docs/operations.md#")
		if !headings[anchor] || anchor != strings.ToLower(r.Alert) {
			t.Errorf("%s: runbook_url %q leads to no heading of docs/operations.md", r.Alert, r.Annotations["runbook_url"])
		}
		if r.Annotations["summary"] == "" || !slices.Contains([]string{"warning", "critical"}, r.Labels["severity"]) {
			t.Errorf("%s lacks a summary or a severity", r.Alert)
		}
		delete(headings, anchor)
	}
	for heading := range headings {
		if strings.HasPrefix(heading, "headgate") && heading != "headgate" {
			t.Errorf("docs/operations.md explains %s, which is no alert", heading)
		}
	}
}

// evaluate runs an alert over the time given, and returns when each of its instances fires for the first time, by its labels: once it has
// been there for For, as Prometheus counts.
func evaluate(t *testing.T, r rulefmt.Rule, m *memory, until time.Duration) map[string]time.Duration {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1 << 20, Timeout: patience, LookbackDelta: 5 * time.Minute, Parser: promQL, EnableAtModifier: true, EnableNegativeOffset: true,
	})
	defer func() { _ = engine.Close() }()
	since, fired := make(map[string]time.Duration), make(map[string]time.Duration)
	for at := time.Duration(0); at <= until; at += step {
		query, err := engine.NewInstantQuery(context.Background(), m, nil, r.Expr, time.UnixMilli(at.Milliseconds()))
		if err != nil {
			t.Fatal(err)
		}
		vector, err := query.Exec(context.Background()).Vector()
		if err != nil {
			t.Fatal(err)
		}
		active := make(map[string]time.Duration)
		for _, s := range vector {
			key := s.Metric.String()
			active[key] = at
			if before, ok := since[key]; ok {
				active[key] = before
			}
			if _, known := fired[key]; !known && at-active[key] >= time.Duration(r.For) {
				fired[key] = at
			}
		}
		since = active
		query.Close()
	}
	return fired
}

// Each alert fires where it must and is silent where it must, over half an hour of samples.
func TestAlertsFire(t *testing.T) {
	const n = "x120" // half an hour of steps
	tests := []struct {
		alert, name string
		series      []string
		fires       []string // labels of those that fire, as a part of their text
		by          time.Duration
	}{
		{alert: "HeadgateDown", name: "away", series: []string{`up{job="headgate",instance="a"} 0` + n, `up{job="headgate",instance="b"} 1` + n}, fires: []string{`instance="a"`}, by: 3 * time.Minute},
		{alert: "HeadgateSentExceedsAllowed", name: "as allowed", series: []string{
			`headgate_upstream_sent_total{job="j",instance="a",route="/"} 0+150` + n, `headgate_exempt_total{job="j",instance="a",route="/"} 0+0` + n,
			`headgate_decisions_total{job="j",instance="a",route="/",decision="allowed",limit="l",source="store"} 0+150` + n,
			`headgate_decisions_total{job="j",instance="a",route="/",decision="denied",limit="l",source="store"} 0+500` + n}},
		{alert: "HeadgateSentExceedsAllowed", name: "one percent", series: []string{
			`headgate_upstream_sent_total{job="j",instance="a",route="/"} 0+1010` + n, `headgate_exempt_total{job="j",instance="a",route="/"} 0+0` + n,
			`headgate_decisions_total{job="j",instance="a",route="/",decision="allowed",limit="l",source="store"} 0+1000` + n}},
		{alert: "HeadgateSentExceedsAllowed", name: "three percent, on one route of two, over two gateways", fires: []string{`route="/a"`}, by: 11 * time.Minute, series: []string{
			`headgate_upstream_sent_total{job="j",instance="a",route="/a"} 0+1000` + n, `headgate_exempt_total{job="j",instance="a",route="/a"} 0+0` + n,
			`headgate_upstream_sent_total{job="j",instance="b",route="/a"} 0+1060` + n, `headgate_exempt_total{job="j",instance="b",route="/a"} 0+0` + n,
			`headgate_decisions_total{job="j",instance="a",route="/a",decision="allowed",limit="l",source="store"} 0+1000` + n,
			`headgate_decisions_total{job="j",instance="b",route="/a",decision="allowed",limit="l",source="local"} 0+1000` + n,
			`headgate_upstream_sent_total{job="j",instance="a",route="/b"} 0+1000` + n, `headgate_exempt_total{job="j",instance="a",route="/b"} 0+0` + n,
			`headgate_decisions_total{job="j",instance="a",route="/b",decision="allowed",limit="l",source="store"} 0+1000` + n}},
		{alert: "HeadgateSentExceedsAllowed", name: "preflights are no fault", series: []string{
			`headgate_upstream_sent_total{job="j",instance="a",route="/"} 0+200` + n, `headgate_exempt_total{job="j",instance="a",route="/"} 0+100` + n,
			`headgate_decisions_total{job="j",instance="a",route="/",decision="allowed",limit="l",source="store"} 0+100` + n}},
		{alert: "HeadgateSentExceedsAllowed", name: "sent without any decision", fires: []string{`route="/"`}, by: 11 * time.Minute, series: []string{
			`headgate_upstream_sent_total{job="j",instance="a",route="/"} 0+100` + n, `headgate_exempt_total{job="j",instance="a",route="/"} 0+0` + n}},
		{alert: "HeadgateSentExceedsAllowed", name: "outbound, sent again as allowed", series: []string{
			`headgate_upstream_sent_total{job="j",instance="a",route="/"} 0+150` + n, `headgate_exempt_total{job="j",instance="a",route="/"} 0+0` + n,
			`headgate_outbound_total{job="j",instance="a",route="/",event="allowed"} 0+150` + n, `headgate_outbound_total{job="j",instance="a",route="/",event="resent"} 0+50` + n,
			`headgate_decisions_total{job="j",instance="a",route="/",decision="allowed",limit="l",source="store"} 0+100` + n}},
		{alert: "HeadgateSentExceedsAllowed", name: "outbound, sent past the gate", fires: []string{`route="/"`}, by: 11 * time.Minute, series: []string{
			`headgate_upstream_sent_total{job="j",instance="a",route="/"} 0+100` + n, `headgate_exempt_total{job="j",instance="a",route="/"} 0+0` + n,
			`headgate_outbound_total{job="j",instance="a",route="/",event="allowed"} 0+90` + n,
			`headgate_decisions_total{job="j",instance="a",route="/",decision="allowed",limit="l",source="store"} 0+100` + n}},
		{alert: "HeadgateSentExceedsAllowed", name: "too few to say", series: []string{
			`headgate_upstream_sent_total{job="j",instance="a",route="/"} 0+1` + n, `headgate_exempt_total{job="j",instance="a",route="/"} 0+0` + n}},
		{alert: "HeadgateDecidesByFallback", name: "store", series: []string{
			`headgate_decisions_total{job="j",instance="a",route="/",decision="allowed",limit="l",source="store"} 0+100` + n,
			`headgate_decisions_total{job="j",instance="a",route="/",decision="allowed",limit="l",source="local"} 7+0` + n}},
		{alert: "HeadgateDecidesByFallback", name: "local", fires: []string{`source="local"`}, by: 3 * time.Minute, series: []string{
			`headgate_decisions_total{job="j",instance="a",route="/",decision="allowed",limit="l",source="store"} 0+100` + n,
			`headgate_decisions_total{job="j",instance="a",route="/",decision="allowed",limit="l",source="local"} 0+1` + n}},
		{alert: "HeadgateBreakerOpen", name: "closed", series: []string{`headgate_breaker_state{job="j",instance="a"} 0` + n}},
		{alert: "HeadgateBreakerOpen", name: "a blink", series: []string{`headgate_breaker_state{job="j",instance="a"} 0x10 1x2 0x100`}},
		{alert: "HeadgateBreakerOpen", name: "open and probing", fires: []string{`instance="b"`}, by: 2 * time.Minute, series: []string{
			`headgate_breaker_state{job="j",instance="a"} 0` + n, `headgate_breaker_state{job="j",instance="b"} 1 2 1 2 1 1 1 1 1 1 1 2 1 2`}},
		{alert: "HeadgateStoreSlow", name: "fast", series: buckets("0+100", "0+100", "0+100")},
		{alert: "HeadgateStoreSlow", name: "one in fifty is slow", series: buckets("0+98", "0+98", "0+100"), fires: []string{`job="j"`}, by: 11 * time.Minute},
		{alert: "HeadgateStoreErrors", name: "one in a thousand", series: []string{
			`headgate_store_errors_total{job="j",instance="a",reason="timeout"} 0+1` + n,
			`headgate_decisions_total{job="j",instance="a",route="/",decision="allowed",limit="l",source="store"} 0+1000` + n}},
		{alert: "HeadgateStoreErrors", name: "one in ten", fires: []string{`job="j"`}, by: 4 * time.Minute, series: []string{
			`headgate_store_errors_total{job="j",instance="a",reason="timeout"} 0+100` + n, `headgate_store_errors_total{job="j",instance="a",reason="failed"} 0+0` + n,
			`headgate_decisions_total{job="j",instance="a",route="/",decision="allowed",limit="l",source="store"} 0+1000` + n}},
		{alert: "HeadgateReloadFailed", name: "one of two", fires: []string{`instance="b"`}, by: 2 * time.Minute, series: []string{
			`headgate_config_last_reload_successful{job="j",instance="a"} 1` + n, `headgate_config_last_reload_successful{job="j",instance="b"} 0` + n}},
		{alert: "HeadgateConfigsDiffer", name: "the same", series: []string{
			`headgate_config_info{job="j",instance="a",version="1",hash="x"} 1` + n, `headgate_config_info{job="j",instance="b",version="2",hash="x"} 1` + n}},
		{alert: "HeadgateConfigsDiffer", name: "two", fires: []string{`job="j"`}, by: 16 * time.Minute, series: []string{
			`headgate_config_info{job="j",instance="a",version="1",hash="x"} 1` + n, `headgate_config_info{job="j",instance="b",version="2",hash="y"} 1` + n}},
		{alert: "HeadgateMemoryEvicts", name: "evicts", fires: []string{`instance="a"`}, by: 10 * time.Minute, series: []string{
			`headgate_memory_evicted_total{job="j",instance="a"} 0+1` + n, `headgate_memory_evicted_total{job="j",instance="b"} 5+0` + n}},
	}
	tested := make(map[string]bool) // alerts, by whether they were seen to fire
	byName := make(map[string]rulefmt.Rule)
	for _, r := range rules(t) {
		byName[r.Alert] = r
	}
	for _, tt := range tests {
		fired := evaluate(t, byName[tt.alert], load(t, tt.series...), 30*time.Minute)
		keys := slices.Sorted(maps.Keys(fired))
		for i, key := range keys {
			if i >= len(tt.fires) || !strings.Contains(key, tt.fires[i]) || fired[key] > tt.by {
				t.Errorf("%s, %s: fires for %s after %s, want %q by %s", tt.alert, tt.name, key, fired[key], tt.fires, tt.by)
			}
		}
		if len(keys) < len(tt.fires) {
			t.Errorf("%s, %s: fires for %q, want %q", tt.alert, tt.name, keys, tt.fires)
		}
		tested[tt.alert] = tested[tt.alert] || len(keys) > 0
	}
	for name := range byName {
		if !tested[name] {
			t.Errorf("%s was not seen to fire", name)
		}
	}
}

// buckets are the store's times: up to 1 ms, 25 ms and any.
func buckets(low, middle, all string) []string {
	var list []string
	for le, values := range map[string]string{"0.001": low, "0.025": middle, "0.1": all, "+Inf": all} {
		list = append(list, fmt.Sprintf(`headgate_store_seconds_bucket{job="j",instance="a",op="take",result="ok",le=%q} %sx120`, le, values))
	}
	return list
}

// The Prometheus of compose.yaml reads the rules, and scrapes under the name that they ask for.
func TestPrometheusConfig(t *testing.T) {
	var config struct {
		RuleFiles     []string `yaml:"rule_files"`
		ScrapeConfigs []struct {
			JobName       string `yaml:"job_name"`
			StaticConfigs []struct {
				Targets []string `yaml:"targets"`
			} `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
		Global map[string]string `yaml:"global"`
	}
	strictYAML(t, "../prometheus/prometheus.yaml", &config)
	for _, file := range config.RuleFiles {
		if _, err := os.Stat(filepath.Join("../prometheus", file)); err != nil {
			t.Error(err)
		}
	}
	if len(config.RuleFiles) != 1 || len(config.ScrapeConfigs) != 1 || config.ScrapeConfigs[0].JobName != "headgate" {
		t.Errorf("%+v, want the rules, and one job headgate", config)
	}
	services := compose(t).Services
	for _, target := range config.ScrapeConfigs[0].StaticConfigs[0].Targets {
		host, port, _ := strings.Cut(target, ":")
		if _, ok := services[host]; !ok || port != "9090" {
			t.Errorf("target %s is no gateway of compose.yaml", target)
		}
	}
}
