package config_test

import (
	"bytes"
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
		t.Error(err)
	}
	if _, err := config.Parse("whole", wholeExample(t)); err != nil {
		t.Error(err)
	}
}

// wholeExample returns the example with what stands behind a # without a space: what needs files or hosts of the reader's own.
func wholeExample(t *testing.T) []byte {
	t.Helper()
	example, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	out := regexp.MustCompile(`(?m)^( *)#( {2}|[a-z])`).ReplaceAll(example, []byte("$1$2"))
	return bytes.ReplaceAll(out, []byte(`"redis://`), []byte(`"rediss+sentinel://`))
}

// The example holds every section, so reading it asks for every key there is. docs/config.md has a table row for each of them:
// | `key` | ...
func TestEveryKeyIsDocumentedAndNoOther(t *testing.T) {
	example := wholeExample(t)
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
