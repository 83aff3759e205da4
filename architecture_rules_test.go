package headgate_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// Each rule of the house is broken here once, and kept once.
func TestRulesBite(t *testing.T) {
	imports := func(pkg string) string { return "package p\n\nimport _ \"" + pkg + "\"\n" }
	long := "package p\n" + strings.Repeat("\n", maxLines)
	tests := []struct {
		rule       func(house) []string
		file, text string
		fault      string // "" = none
	}{
		{importFaults, "a.go", imports("net/http"), ""},
		{importFaults, "a.go", imports(module + "/internal/table"), ""},
		{importFaults, "a.go", imports(module + "/storetest"), "a.go imports"},
		{importFaults, "a_test.go", imports(module + "/storetest"), ""},
		{importFaults, "a_test.go", imports(module + "/redisstore"), "a_test.go imports"},
		{importFaults, "a_test.go", imports("github.com/stretchr/testify"), "a_test.go imports"},
		{importFaults, "internal/algorithm/a.go", imports("math/bits"), ""},
		{importFaults, "internal/algorithm/a.go", imports("time"), "internal/algorithm/a.go imports"},
		{importFaults, "internal/algorithm/a.go", imports(module), "internal/algorithm/a.go imports"},
		{importFaults, "internal/algorithm/a.go", imports(module + "/internal/table"), "internal/algorithm/a.go imports"},
		{importFaults, "internal/oracle/a.go", imports(module), ""},
		{importFaults, "internal/oracle/a.go", imports(module + "/redisstore"), "internal/oracle/a.go imports"},
		{importFaults, "httplimit/a.go", imports(module), ""},
		{importFaults, "httplimit/a.go", imports("github.com/redis/go-redis/v9"), "httplimit/a.go imports"},
		{importFaults, "denial/a.go", imports(module), ""},
		{importFaults, "denial/a.go", imports(module + "/redisstore"), "denial/a.go imports"},
		{importFaults, "lease/a.go", imports(module), ""},
		{importFaults, "lease/a.go", imports(module + "/redisstore"), "lease/a.go imports"},
		{importFaults, "httplimit/a_test.go", imports("google.golang.org/grpc"), "httplimit/a_test.go imports"},
		{importFaults, "redisstore/a.go", imports("github.com/redis/go-redis/v9/maintnotifications"), ""},
		{importFaults, "redisstore/a.go", imports(module + "/redisstore/redistest"), ""},
		{importFaults, "redisstore/a.go", imports(module + "/internal/algorithm"), ""},
		{importFaults, "redisstore/a.go", imports("github.com/redis/rueidis"), "redisstore/a.go imports"},
		{importFaults, "redisstore/a_test.go", imports("github.com/stretchr/testify"), "redisstore/a_test.go imports"},
		{importFaults, "redisstore/a.go", imports("github.com/redis/go-redis/v9extra"), "redisstore/a.go imports"},
		{importFaults, "redisstore/a_test.go", imports(module + "/cmd/headgate/internal/cli"), "redisstore/a_test.go imports"},
		{importFaults, "grpclimit/a.go", imports("google.golang.org/grpc/codes"), ""},
		{importFaults, "grpclimit/a.go", imports(module + "/redisstore"), "grpclimit/a.go imports"},
		{importFaults, "contrib/ginlimit/a.go", imports("github.com/gin-gonic/gin"), ""},
		{importFaults, "contrib/ginlimit/a.go", imports("github.com/labstack/echo/v4"), "contrib/ginlimit/a.go imports"},
		{importFaults, "contrib/otherlimit/a.go", imports(module), "contrib/otherlimit/a.go imports"},
		{importFaults, "cmd/headgate/a.go", imports(module + "/cmd/headgate/internal/cli"), ""},
		{importFaults, "cmd/headgate/a.go", imports("github.com/alecthomas/kong"), ""},
		{importFaults, "cmd/headgate/a.go", imports(module + "/" + testSupport), "cmd/headgate/a.go imports"},
		{importFaults, "cmd/headgate/a_test.go", imports(module + "/" + testSupport), ""},
		{importFaults, testSupport + "/a.go", imports("github.com/alecthomas/kong"), testSupport + "/a.go imports"},
		{importFaults, "proof/a.go", imports(module + "/redisstore"), ""},
		{importFaults, "proof/a.go", imports(module + "/cmd/headgate"), "proof/a.go imports"},
		{importFaults, "bench/a.go", imports("github.com/ulule/limiter/v3"), ""},
		{importFaults, "bench/a.go", imports(module + "/cmd/headgate"), "bench/a.go imports"},
		{importFaults, "redisstore/a.go", imports(module + "/bench/internal/load"), "redisstore/a.go imports"},

		{docFaults, "a.go", "package p\n", "the package has no comment"},
		{docFaults, "a.go", "// Package p.\npackage p\n\nfunc F() {}\n", "a.go: F has"},
		{docFaults, "a.go", "// Package p.\npackage p\n\n// F does.\nfunc F() {}\n\nfunc f() {}\n", ""},
		{docFaults, "a.go", "// Package p.\npackage p\n\n// T is.\ntype T[E any] int\n\nfunc (*T[E]) M() {}\n", "a.go: M has"},
		{docFaults, "a.go", "// Package p.\npackage p\n\ntype t int\n\nfunc (t) M() {}\n", ""},
		{docFaults, "a.go", "// Package p.\npackage p\n\ntype T int\n", "a.go: T has"},
		{docFaults, "a.go", "// Package p.\npackage p\n\nconst (\n\ta = 1\n\tB = 2\n)\n", "a.go: B has"},
		{docFaults, "a.go", "// Package p.\npackage p\n\nconst (\n\tB = 2 // a number\n)\n", ""},
		{docFaults, "a.go", "// Package p.\npackage p\n\n// I is.\ntype I interface{ M() }\n", "a.go: I.M has"},
		{docFaults, "a.go", "// Package p.\npackage p\n\n// Config is.\ntype Config struct{ A, b int }\n", "a.go: Config.A has"},
		{docFaults, "a.go", "// Package p.\npackage p\n\n// State is.\ntype State struct{ A int }\n", ""},
		{docFaults, "internal/a/a.go", "package p\n\nfunc F() {}\n", ""},
		{docFaults, "a_test.go", "package p\n\nfunc F() {}\n", ""},
		{docFaults, "cmd/headgate/main.go", "package main\n\nfunc F() {}\n", ""},

		{lengthFaults, "a.go", long, "a.go has 501 lines"},
		{lengthFaults, "a.go", long[:len(long)-1], ""},
		{lengthFaults, "a_test.go", long, ""},
		{lengthFaults, "a.go", "// Code generated by p. DO NOT EDIT.\n\n" + long, ""},
	}
	for _, tt := range tests {
		tree := fstest.MapFS{tt.file: {Data: []byte(tt.text)}}
		for _, m := range []string{".", "redisstore", "cmd/headgate", "grpclimit", "contrib/ginlimit", "bench", "proof"} {
			tree[strings.TrimPrefix(m+"/go.mod", "./")] = &fstest.MapFile{}
		}
		h, err := enter(tree)
		if err != nil {
			t.Fatal(err)
		}
		faults := tt.rule(h)
		bites := slices.ContainsFunc(faults, func(f string) bool { return strings.Contains(f, tt.fault) })
		if tt.fault == "" && len(faults) > 0 || tt.fault != "" && !bites {
			t.Errorf("%s with\n%s\nfaults %q, want %q", tt.file, tt.text[:min(len(tt.text), 100)], faults, tt.fault)
		}
	}
}
