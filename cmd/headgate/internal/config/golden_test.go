package config_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/config"
)

var update = flag.Bool("update", false, "write the .want files of testdata/bad anew")

func TestFilesThatAreRight(t *testing.T) {
	for _, file := range glob(t, "testdata/good/*.yaml") {
		if _, err := config.Load(file); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// Every file of testdata/bad fails with exactly the lines of the .want file beside it.
func TestFilesThatMustFail(t *testing.T) {
	for _, file := range glob(t, "testdata/bad/*.yaml") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, err = config.Parse(filepath.Base(file), data)
		var problems config.Problems
		if !errors.As(err, &problems) || len(problems) == 0 {
			t.Errorf("%s: error %v, want problems", file, err)
			continue
		}
		got := problems.Error() + "\n"
		if strings.Contains(got, "secret") {
			t.Errorf("%s: a problem repeats a secret:\n%s", file, got)
		}
		wantFile := strings.TrimSuffix(file, ".yaml") + ".want"
		if *update {
			if err := os.WriteFile(wantFile, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(wantFile)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s: got\n%swant\n%s", file, got, want)
		}
	}
}

func glob(t testing.TB, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no files (%v)", pattern, err)
	}
	return files
}
