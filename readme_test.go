package headgate_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each Go snippet of the README is part of an Example, which the compiler and its checked output keep right.
func TestReadmeSnippetsAreExamples(t *testing.T) {
	var examples []string
	for _, pattern := range []string{"example_test.go", "*/example_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			examples = append(examples, unindented(read(t, file)))
		}
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(read(t, "README.md"), -1)
	if len(blocks) == 0 {
		t.Error("no Go snippet found")
	}
	for i, block := range blocks {
		found := false
		for _, example := range examples {
			found = found || strings.Contains(example, "\n"+unindented(block[1]))
		}
		if !found {
			t.Errorf("snippet %d is not part of an Example:\n%s", i+1, block[1])
		}
	}
}

// The package comment's program is the package's Example.
func TestPackageCommentIsTheExample(t *testing.T) {
	_, program, _ := strings.Cut(unindented(strings.ReplaceAll(read(t, "doc.go"), "//", "")), "func main() {\n")
	program, _, _ = strings.Cut(program, "\n}\n\n")
	if program == "" || !strings.Contains(unindented(read(t, "example_test.go")), "\n"+program+"\n") {
		t.Errorf("not part of an Example:\n%s", program)
	}
}

// Links in the documents of the root lead to files that exist.
func TestLinksLeadSomewhere(t *testing.T) {
	files, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	docs, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`)
	for _, file := range append(files, docs...) {
		for _, m := range link.FindAllStringSubmatch(read(t, file), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), m[1])); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// unindented returns text without the white space at the begin of its lines.
func unindented(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "\n")
}
