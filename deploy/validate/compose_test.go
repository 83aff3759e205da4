package validate_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// strictYAML reads a file in which every key must be one of into's.
func strictYAML(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

type composeFile struct {
	Name     string             `yaml:"name"`
	Gateway  service            `yaml:"x-gateway"`
	Services map[string]service `yaml:"services"`
}

// A service has the keys of the Compose specification that the file uses.
type service struct {
	Image           string            `yaml:"image"`
	Build           map[string]string `yaml:"build"`
	Command         []string          `yaml:"command"`
	Environment     map[string]string `yaml:"environment"`
	Volumes         []string          `yaml:"volumes"`
	Ports           []string          `yaml:"ports"`
	DependsOn       []string          `yaml:"depends_on"`
	Restart         string            `yaml:"restart"`
	StopGracePeriod string            `yaml:"stop_grace_period"`
	ReadOnly        bool              `yaml:"read_only"`
	CapDrop         []string          `yaml:"cap_drop"`
	SecurityOpt     []string          `yaml:"security_opt"`
}

func compose(t *testing.T) composeFile {
	t.Helper()
	var c composeFile
	strictYAML(t, "../compose.yaml", &c)
	return c
}

func TestCompose(t *testing.T) {
	c := compose(t)
	gateways, ports := 0, make(map[string]string)
	for name, s := range c.Services {
		if s.Image == "" || strings.HasSuffix(s.Image, ":latest") {
			t.Errorf("%s has the image %q, want one of a version", name, s.Image)
		}
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			if _, err := os.Stat(filepath.Join("..", from)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, p := range s.Ports {
			if other, taken := ports[p[:strings.LastIndex(p, ":")]]; taken {
				t.Errorf("%s and %s publish %s", name, other, p)
			}
			ports[p[:strings.LastIndex(p, ":")]] = name
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s publishes %s to everybody", name, p)
			}
			if s.Image == "headgate" && strings.HasSuffix(p, ":9090") {
				t.Errorf("%s publishes its admin listener", name)
			}
		}
		for _, d := range s.DependsOn {
			if _, ok := c.Services[d]; !ok {
				t.Errorf("%s depends on %s, which is no service", name, d)
			}
		}
		if s.Image == "headgate" {
			gateways++
			if _, err := os.Stat(filepath.Join("..", s.Build["context"], s.Build["dockerfile"])); err != nil {
				t.Error(err)
			}
		}
	}
	if gateways != 2 {
		t.Errorf("%d gateways, want 2", gateways)
	}
	check(t, "../headgate.yaml")
}

// The gateways' configuration leads to services that there are.
func TestComposeConfigurationLeadsToItsServices(t *testing.T) {
	data, err := os.ReadFile("../headgate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	services := compose(t).Services
	for name, where := range map[string]string{"redis": "redis://redis:6379", "upstream": "http://upstream:8080"} {
		if _, ok := services[name]; !ok || !strings.Contains(string(data), where) {
			t.Errorf("the configuration does not lead to %s, or there is no such service", where)
		}
	}
}
