package headgate_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/headgate/headgate"

// mayImport says what a room's files, but for its tests, may import besides the standard library: docs/architecture.md says why. The
// longest folder that holds a file is its room. What a room may import, it may import with all that lies below.
var mayImport = map[string][]string{
	".":                  {module + "/internal/algorithm", module + "/internal/table"},
	"internal/algorithm": {},
	"internal/table":     {module + "/internal/algorithm"},
	"internal":           {module},
	"httplimit":          {module},
	"storetest":          {module},
	"redisstore":         {module, "github.com/redis/go-redis/v9"},
	"cmd/headgate":       {module, "github.com/redis/go-redis/v9", "github.com/alecthomas/kong", "go.yaml.in/yaml/v4"},
}

// otherModules are the folders of modules that the root module must not import, tests included.
var otherModules = []string{"redisstore", "cmd"}

func TestImports(t *testing.T) {
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		file = filepath.ToSlash(file)
		if name := entry.Name(); entry.IsDir() && file != "." && (strings.HasPrefix(name, ".") || name == "testdata") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(file, ".go") {
			checkImports(t, file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func checkImports(t *testing.T, file string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Error(err)
		return
	}
	room := roomOf(file)
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Error(err)
			continue
		}
		if !allowed(file, room, imported) {
			t.Errorf("%s imports %s, which room %s may not", file, imported, room)
		}
	}
}

// roomOf returns the longest key of mayImport that holds file; "" for a room that is not listed.
func roomOf(file string) string {
	dir := path.Dir(file)
	for ; dir != "."; dir = path.Dir(dir) {
		if _, ok := mayImport[dir]; ok {
			return dir
		}
	}
	if strings.Contains(file, "/") {
		return ""
	}
	return "."
}

func allowed(file, room, imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	standard := !strings.Contains(first, ".")
	inRoot := !within(file, otherModules...)
	pure := room == "internal/algorithm" && !strings.HasSuffix(file, "_test.go")
	switch {
	case standard:
		return !pure || imported == "math" || imported == "math/bits" // no clock, no I/O, no goroutine
	case within(imported, module+"/cmd"):
		return room == "cmd/headgate"
	case inRoot && within(imported, module+"/redisstore"):
		return false
	case strings.HasSuffix(file, "_test.go") && within(imported, module):
		return true
	}
	return within(imported, mayImport[room]...)
}

// within says whether p is one of roots or lies below one.
func within(p string, roots ...string) bool {
	for _, root := range roots {
		if p == root || strings.HasPrefix(p, root+"/") {
			return true
		}
	}
	return false
}
