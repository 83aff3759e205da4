package headgate_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/headgate/headgate"

// testSupport is what the tests of the program share, and only they import.
const testSupport = "cmd/headgate/internal/gatetest"

// maxLines is where a file is split by idea; tests may be longer.
const maxLines = 500

// anything, in mayImport, is no limit but one: only the program imports the program.
const anything = "*"

// mayImport says what a room's files may import besides the standard library and, outside the root module, their own module:
// docs/architecture.md says why. The longest folder that holds a file is its room. An entry stands for all below it that lies in the same
// module. A test may import all of the root module as well. The modules that are yet to come have their line already.
var mayImport = map[string][]string{
	".":                  {module + "/internal/algorithm", module + "/internal/line", module + "/internal/table"},
	"internal/algorithm": {},
	"internal/line":      {},
	"internal/table":     {module + "/internal/algorithm"},
	"internal":           {module},
	"httplimit":          {module},
	"lease":              {module, module + "/internal/algorithm"},
	"outbound":           {module},
	"denial":             {module},
	"storetest":          {module},
	"scripts":            {},
	"redisstore":         {module, "github.com/redis/go-redis/v9"},
	"grpclimit":          {module, "google.golang.org/grpc"},
	"contrib/ginlimit":   {module, "github.com/gin-gonic/gin"},
	"contrib/echolimit":  {module, "github.com/labstack/echo"},
	"contrib/fiberlimit": {module, "github.com/gofiber/fiber"},
	"contrib/promlimit":  {module, "github.com/prometheus/client_golang"},
	"contrib/otellimit":  {module, "go.opentelemetry.io/otel"},
	"cmd/headgate":       {anything},
	"bench":              {anything},
	"deploy":             {anything},
	"proof":              {anything},
	"examples":           {anything},
	testSupport:          {},
	"cmd/headgate/internal/load": {
		module, module + "/internal/algorithm", module + "/redisstore", "github.com/redis/go-redis/v9", "github.com/HdrHistogram/hdrhistogram-go",
	},
}

// A house is all the Go files of the repository.
type house struct {
	modules []string // folders with a go.mod
	files   []source
}

// A source is one Go file.
type source struct {
	name  string // from the root, with slashes
	lines int
	ast   *ast.File
}

func (s source) test() bool { return strings.HasSuffix(s.name, "_test.go") }

// enter reads every module of a tree.
func enter(tree fs.FS) (house, error) {
	var h house
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch base := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (strings.HasPrefix(base, ".") || base == "testdata" || base == "bin"):
			return fs.SkipDir
		case base == "go.mod":
			h.modules = append(h.modules, path.Dir(name))
		case path.Ext(base) == ".go":
			return h.add(tree, name)
		}
		return nil
	})
	return h, err
}

func (h *house) add(tree fs.FS, name string) error {
	text, err := fs.ReadFile(tree, name)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	h.files = append(h.files, source{name: name, lines: bytes.Count(text, []byte("\n")), ast: file})
	return nil
}

// moduleOf returns the folder of the module that a folder lies in.
func (h *house) moduleOf(dir string) string {
	longest := "."
	for _, m := range h.modules {
		if within(dir, m) && len(m) > len(longest) {
			longest = m
		}
	}
	return longest
}

func TestImports(t *testing.T)       { report(t, importFaults) }
func TestDocumented(t *testing.T)    { report(t, docFaults) }
func TestFilesAreShort(t *testing.T) { report(t, lengthFaults) }

// The root module's dependency list is empty.
func TestRootRequiresNothing(t *testing.T) {
	text, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, []byte("require")) || bytes.Contains(text, []byte("replace")) {
		t.Errorf("go.mod of the root:\n%s", text)
	}
}

func report(t *testing.T, faults func(house) []string) {
	h, err := enter(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	if len(h.files) == 0 {
		t.Error("no Go file found")
	}
	for _, fault := range faults(h) {
		t.Error(fault)
	}
}

func importFaults(h house) []string {
	var faults []string
	for _, s := range h.files {
		for _, spec := range s.ast.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil || !h.allowed(s, imported) {
				faults = append(faults, fmt.Sprintf("%s imports %s, which room %q may not", s.name, imported, roomOf(s.name)))
			}
		}
	}
	return faults
}

// roomOf returns the longest key of mayImport that holds the file; "" for a room that is not listed and may import nothing.
func roomOf(file string) string {
	for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
		if _, ok := mayImport[dir]; ok {
			return dir
		}
	}
	if path.Dir(file) != "." {
		return ""
	}
	return "."
}

func (h *house) allowed(s source, imported string) bool {
	if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") {
		pure := roomOf(s.name) == "internal/algorithm" && !s.test()
		return !pure || imported == "math" || imported == "math/bits" // no clock, no I/O, no goroutine
	}
	home := h.moduleOf(path.Dir(s.name))
	if within(imported, module+"/cmd") {
		return within(home, "cmd") && home == h.homeOf(imported) && (s.test() || imported != module+"/"+testSupport)
	}
	if within(imported, module) {
		if away := h.homeOf(imported); away == home && home != "." || away == "." && s.test() {
			return true
		}
	}
	for _, entry := range mayImport[roomOf(s.name)] {
		if entry == anything || within(imported, entry) && h.homeOf(imported) == h.homeOf(entry) {
			return true
		}
	}
	return false
}

// homeOf returns the folder of the module of ours that holds a package; "" for those of others.
func (h *house) homeOf(imported string) string {
	if !within(imported, module) {
		return ""
	}
	return h.moduleOf(path.Join(".", strings.TrimPrefix(strings.TrimPrefix(imported, module), "/")))
}

// within says whether p is root or lies below it.
func within(p, root string) bool {
	return p == root || strings.HasPrefix(p, root+"/")
}

func lengthFaults(h house) []string {
	var faults []string
	for _, s := range h.files {
		if s.lines > maxLines && !s.test() && !ast.IsGenerated(s.ast) {
			faults = append(faults, fmt.Sprintf("%s has %d lines, want at most %d: split it by idea", s.name, s.lines, maxLines))
		}
	}
	return faults
}

// docFaults lists what lacks a comment among the names that a package shows: the package, its types, functions, methods, constants and variables,
// the methods of its interfaces and the fields of its Configs. Programs, tests and internal packages show nothing.
func docFaults(h house) []string {
	var faults []string
	described := make(map[string]bool) // folders, by whether the package has a comment
	for _, s := range h.files {
		dir := path.Dir(s.name)
		if s.test() || s.ast.Name.Name == "main" || strings.Contains("/"+dir+"/", "/internal/") {
			continue
		}
		described[dir] = described[dir] || s.ast.Doc.Text() != ""
		for _, decl := range s.ast.Decls {
			for _, name := range undocumented(decl) {
				faults = append(faults, fmt.Sprintf("%s: %s has no comment", s.name, name))
			}
		}
	}
	for dir, ok := range described {
		if !ok {
			faults = append(faults, fmt.Sprintf("%s: the package has no comment", dir))
		}
	}
	return faults
}

// undocumented returns the exported names that a declaration leaves without a comment.
func undocumented(decl ast.Decl) []string {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && shown(d.Recv) && d.Doc.Text() == "" {
			return []string{d.Name.Name}
		}
	case *ast.GenDecl:
		var names []string
		for _, spec := range d.Specs {
			names = append(names, undocumentedSpec(d, spec)...)
		}
		return names
	}
	return nil
}

// shown says whether a function is one of the package, or of an exported type.
func shown(recv *ast.FieldList) bool {
	if recv == nil {
		return true
	}
	for typ := recv.List[0].Type; ; {
		switch x := typ.(type) {
		case *ast.StarExpr:
			typ = x.X
		case *ast.IndexExpr:
			typ = x.X
		case *ast.IndexListExpr:
			typ = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return true
		}
	}
}

func undocumentedSpec(d *ast.GenDecl, spec ast.Spec) []string {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		return bare(s.Names, d.Doc, s.Doc, s.Comment)
	case *ast.TypeSpec:
		names := bare([]*ast.Ident{s.Name}, d.Doc, s.Doc, s.Comment)
		if !s.Name.IsExported() {
			return names
		}
		var fields *ast.FieldList
		switch x := s.Type.(type) {
		case *ast.InterfaceType:
			fields = x.Methods
		case *ast.StructType:
			if strings.HasSuffix(s.Name.Name, "Config") {
				fields = x.Fields
			}
		}
		if fields == nil {
			return names
		}
		for _, f := range fields.List {
			for _, name := range bare(f.Names, f.Doc, f.Comment) {
				names = append(names, s.Name.Name+"."+name)
			}
		}
		return names
	}
	return nil
}

// bare returns the exported ones of names, unless one of docs says something.
func bare(names []*ast.Ident, docs ...*ast.CommentGroup) []string {
	for _, doc := range docs {
		if doc.Text() != "" {
			return nil
		}
	}
	var exported []string
	for _, name := range names {
		if name.IsExported() {
			exported = append(exported, name.Name)
		}
	}
	return exported
}
