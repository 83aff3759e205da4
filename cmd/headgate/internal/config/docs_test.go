package config_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/config"
)

const (
	exampleFile  = "../../../../headgate.example.yaml"
	documentFile = "../../../../docs/config.md"
)

func TestExampleIsRight(t *testing.T) {
	if _, err := config.Load(exampleFile); err != nil {
		t.Fatal(err)
	}
}

// The example holds every section, so reading it asks for every key there is. docs/config.md has a table row for each of them:
// | `key` | ...
func TestEveryKeyIsDocumentedAndNoOther(t *testing.T) {
	example, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	known := config.Keys(example)
	text, err := os.ReadFile(documentFile)
	if err != nil {
		t.Fatal(err)
	}
	documented := make(map[string]bool)
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllSubmatch(text, -1) {
		documented[string(row[1])] = true
	}
	for key := range known {
		if !documented[key] {
			t.Errorf("%s is not documented", key)
		}
		if short := key[regexp.MustCompile(`[a-z0-9_]+$`).FindStringIndex(key)[0]:]; !regexp.MustCompile(`\b` + short + `:`).Match(example) {
			t.Errorf("%s does not occur in the example", key)
		}
	}
	for key := range documented {
		if !known[key] {
			t.Errorf("%s is documented, and no key", key)
		}
	}
}
