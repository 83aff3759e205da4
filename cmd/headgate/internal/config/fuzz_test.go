package config_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/config"
)

// FuzzParse holds that reading never panics, and that what is refused is refused with whole lines of the file.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/bad/*.yaml"} {
		for _, file := range seeds(f, pattern) {
			f.Add(file)
		}
	}
	f.Add([]byte("{0\r0"))
	f.Add([]byte("{0\u20280\u2029\u0085"))
	// What ends a line for the parser, and for an editor that shows the file.
	ends := strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := config.Parse("f", data)
		if err == nil {
			if len(c.Routes) == 0 || c.Listen == "" {
				t.Fatalf("accepted without routes or listen: %+v", c)
			}
			return
		}
		var problems config.Problems
		if !errors.As(err, &problems) || len(problems) == 0 {
			t.Fatalf("error %v, want problems", err)
		}
		lines := strings.Count(ends.Replace(string(data)), "\n") + 2 // the parser may point past the end
		for _, p := range problems {
			if p.Line < 1 || p.Line > lines || strings.ContainsAny(p.Text, "\n\r") || p.Text == "" {
				t.Fatalf("problem %q in a file of %d lines", p, lines)
			}
		}
	})
}

func seeds(f *testing.F, pattern string) [][]byte {
	f.Helper()
	var out [][]byte
	for _, file := range glob(f, pattern) {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		out = append(out, data)
	}
	return out
}
