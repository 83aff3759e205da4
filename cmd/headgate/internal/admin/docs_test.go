package admin_test

import (
	"flag"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the answers in docs/api.md anew")

const documentFile = "../../../../docs/api.md"

// The examples of docs/api.md are run in their order, against the configuration that it shows, and answered as it says. Times differ
// from run to run, and are compared as "some".
func TestExamplesInTheDocument(t *testing.T) {
	data, err := os.ReadFile(documentFile)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	yaml := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(text)
	if yaml == nil {
		t.Fatal("no configuration")
	}
	s := start(t, yaml[1], nil)
	n := 0
	out := regexp.MustCompile("(?s)```console\n\\$ (curl .*?[^\\\\])\n(.*?)```").ReplaceAllStringFunc(text, func(block string) string {
		n++
		command, want, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(block, "```console\n"), "```"), "\n")
		for strings.HasSuffix(command, "\\") {
			var line string
			line, want, _ = strings.Cut(want, "\n")
			command += "\n" + line
		}
		got := s.curl(t, strings.ReplaceAll(strings.TrimPrefix(command, "$ "), "\\\n", " "))
		if some(got) != some(want) && !*update {
			t.Errorf("%s\nanswers\n%swant\n%s", command, got, want)
		}
		return "```console\n" + command + "\n" + got + "```"
	})
	if n < 8 {
		t.Errorf("%d examples found, want 8 or more", n)
	}
	if *update {
		if err := os.WriteFile(documentFile, []byte(out), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// some replaces what differs from run to run.
func some(answer string) string {
	answer = regexp.MustCompile(`"at":"[0-9TZ:.-]+"`).ReplaceAllString(answer, `"at":SOME`)
	answer = regexp.MustCompile(`("retry_after|_after_ms)":[1-9]\d*`).ReplaceAllString(answer, `$1":SOME`)
	return regexp.MustCompile(`(;t=|Retry-After: )[1-9]\d*`).ReplaceAllString(answer, `${1}SOME`)
}

// curl does what the command would, and returns what it would print; with -i, of the header what matters here.
func (s *service) curl(t *testing.T, command string) string {
	t.Helper()
	method, url, body, head := http.MethodGet, "", "", false
	var edit []func(*http.Request)
	words := split(command)[1:]
	for i := 0; i < len(words); i++ {
		switch words[i] {
		case "-s":
		case "-i":
			head = true
		case "-H":
			i++
			name, value, _ := strings.Cut(words[i], ": ")
			edit = append(edit, header(name, value))
		case "-d":
			i++
			method, body = http.MethodPost, words[i]
		default:
			url = words[i]
		}
	}
	path, found := strings.CutPrefix(url, "http://127.0.0.1:9090")
	if !found {
		t.Fatalf("%s asks elsewhere", command)
	}
	a := s.send(t, method, path, body, edit...)
	if !head {
		return a.body
	}
	lines := []string{a.Proto + " " + a.Status}
	for _, name := range []string{
		"Content-Type", "Www-Authenticate", "X-Headgate-Tenant", "X-Headgate-Status", "Retry-After", "Ratelimit-Policy", "Ratelimit",
	} {
		if values := a.Header[name]; len(values) > 0 {
			lines = append(lines, name+": "+values[0])
		}
	}
	return strings.Join(slices.DeleteFunc(append(lines, "", a.body), func(l string) bool { return l == "" && a.body == "" }), "\n") +
		map[bool]string{true: "\n"}[a.body == ""]
}

// split splits a command at spaces outside of single quotes.
func split(command string) []string {
	var words []string
	quoted := false
	for _, part := range strings.Split(command, "'") {
		if quoted {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
		quoted = !quoted
	}
	return words
}
