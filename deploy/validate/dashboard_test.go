package validate_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
)

const dashboardFile = "../grafana/dashboards/headgate.json"

type dashboard struct {
	UID        string  `json:"uid"`
	Title      string  `json:"title"`
	Panels     []panel `json:"panels"`
	Templating struct {
		List []variable `json:"list"`
	} `json:"templating"`
}

type variable struct {
	Name  string          `json:"name"`
	Type  string          `json:"type"`
	Query json.RawMessage `json:"query"`
}

type panel struct {
	ID          int      `json:"id"`
	Type        string   `json:"type"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	GridPos     gridPos  `json:"gridPos"`
	Targets     []target `json:"targets"`
	Datasource  struct {
		UID string `json:"uid"`
	} `json:"datasource"`
}

type gridPos struct{ H, W, X, Y int }

type target struct {
	RefID        string `json:"refId"`
	Expr         string `json:"expr"`
	LegendFormat string `json:"legendFormat"`
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	data, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// plain is a query with Grafana's variables filled in.
func plain(query string) string {
	return strings.NewReplacer("$__rate_interval", "1m", "$job", "headgate", "$instance", ".*", "$route", ".*").Replace(query)
}

func TestDashboardReadsWhatGatewaysServe(t *testing.T) {
	for _, p := range readDashboard(t).Panels {
		for _, q := range p.Targets {
			where := fmt.Sprintf("panel %q, query %s", p.Title, q.RefID)
			if left := plain(q.Expr); strings.Contains(left, "$") {
				t.Errorf("%s has an unknown variable: %s", where, left)
			}
			checkQuery(t, where, plain(q.Expr))
			by := make(map[string]bool)
			for _, m := range regexp.MustCompile(`by \(([^)]*)\)`).FindAllStringSubmatch(q.Expr, -1) {
				for label := range strings.SplitSeq(m[1], ",") {
					by[strings.TrimSpace(label)] = true
				}
			}
			for _, m := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(q.LegendFormat, -1) {
				if m[1] != "instance" && !by[m[1]] {
					t.Errorf("%s shows %s, which its result does not have", where, m[1])
				}
			}
		}
	}
}

// Labels that a query groups by are those of the series, since a wrong one would silently make one group of all.
func TestQueriesGroupByLabelsThatExist(t *testing.T) {
	groups := regexp.MustCompile(`by \(([^)]*)\)`)
	queries := make(map[string]string)
	for _, p := range readDashboard(t).Panels {
		for _, q := range p.Targets {
			queries[p.Title] = plain(q.Expr)
		}
	}
	for _, r := range rules(t) {
		queries[r.Alert] = r.Expr
	}
	for where, query := range queries {
		for _, m := range groups.FindAllStringSubmatch(query, -1) {
			for label := range strings.SplitSeq(m[1], ",") {
				label = strings.TrimSpace(label)
				known := slices.ContainsFunc(selectors(t, query), func(s *parser.VectorSelector) bool { return served(t).knows(s.Name, []string{label}) == nil })
				if !known {
					t.Errorf("%s groups by %s, which nothing in it has", where, label)
				}
			}
		}
	}
}

func TestDashboardShowsAllowedAndSentOnOnePanel(t *testing.T) {
	for _, p := range readDashboard(t).Panels {
		if p.Type != "timeseries" {
			continue
		}
		allowed, sent := false, false
		for _, q := range p.Targets {
			allowed = allowed || strings.Contains(q.Expr, `headgate_decisions_total{`) && strings.Contains(q.Expr, `decision="allowed"`)
			sent = sent || strings.Contains(q.Expr, "headgate_upstream_sent_total{")
		}
		if allowed && sent {
			return
		}
	}
	t.Error("no panel shows both")
}

func TestDashboardIsWhole(t *testing.T) {
	d := readDashboard(t)
	if d.UID == "" || d.Title == "" {
		t.Errorf("uid %q, title %q", d.UID, d.Title)
	}
	ids := make(map[int]string)
	taken := make(map[[2]int]string)
	for _, p := range d.Panels {
		if other, twice := ids[p.ID]; twice || p.Title == "" {
			t.Errorf("panel %q has the id of %q", p.Title, other)
		}
		ids[p.ID] = p.Title
		if p.Type != "row" && (len(p.Targets) == 0 || p.Datasource.UID != "${datasource}") {
			t.Errorf("panel %q has no query, or a data source of its own", p.Title)
		}
		g := p.GridPos
		if g.W < 1 || g.H < 1 || g.X < 0 || g.X+g.W > 24 {
			t.Errorf("panel %q lies at %+v, outside of the 24 columns", p.Title, g)
		}
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if other, full := taken[[2]int{x, y}]; full {
					t.Fatalf("panels %q and %q overlap", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
	for _, v := range d.Templating.List {
		if m := regexp.MustCompile(`label_values\((.*), (\w+)\)`).FindStringSubmatch(string(v.Query)); m != nil {
			query := plain(strings.ReplaceAll(m[1], `\"`, `"`))
			checkQuery(t, "variable "+v.Name, query)
			if err := served(t).knows(selectors(t, query)[0].Name, []string{m[2]}); err != nil {
				t.Errorf("variable %s: %v", v.Name, err)
			}
		}
	}
}

// Grafana of compose.yaml finds the dashboard and the data source.
func TestGrafanaProvisioning(t *testing.T) {
	var dashboards struct {
		APIVersion int `yaml:"apiVersion"`
		Providers  []struct {
			Name    string            `yaml:"name"`
			Type    string            `yaml:"type"`
			Options map[string]string `yaml:"options"`
		} `yaml:"providers"`
	}
	strictYAML(t, "../grafana/provisioning/dashboards/headgate.yaml", &dashboards)
	var sources struct {
		APIVersion  int `yaml:"apiVersion"`
		Datasources []struct {
			Name      string            `yaml:"name"`
			Type      string            `yaml:"type"`
			URL       string            `yaml:"url"`
			IsDefault bool              `yaml:"isDefault"`
			JSONData  map[string]string `yaml:"jsonData"`
		} `yaml:"datasources"`
	}
	strictYAML(t, "../grafana/provisioning/datasources/prometheus.yaml", &sources)
	if len(dashboards.Providers) != 1 || len(sources.Datasources) != 1 || sources.Datasources[0].URL != "http://prometheus:9090" {
		t.Fatalf("%+v, %+v", dashboards, sources)
	}
	grafana := compose(t).Services["grafana"]
	home := grafana.Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
	if want := filepath.Join(dashboards.Providers[0].Options["path"], filepath.Base(dashboardFile)); home != want {
		t.Errorf("home dashboard %s, want %s", home, want)
	}
	if !slices.ContainsFunc(grafana.Volumes, func(v string) bool {
		return strings.HasPrefix(v, "./grafana/dashboards:"+dashboards.Providers[0].Options["path"]+":")
	}) {
		t.Errorf("volumes %q do not bring the dashboards to where the provider looks", grafana.Volumes)
	}
}
