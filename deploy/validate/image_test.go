package validate_test

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

const dockerfile = "../Dockerfile"

// buildAsImage runs the build command of the Dockerfile, with its environment, and puts the program at out.
func buildAsImage(out string) error {
	text, err := os.ReadFile(dockerfile)
	if err != nil {
		return err
	}
	line := regexp.MustCompile(`(?m)^RUN (go build .*) -o (\S+) (\S+)$`).FindStringSubmatch(string(text))
	if line == nil {
		return fmt.Errorf("%s has no line RUN go build ... -o FILE PACKAGE", dockerfile)
	}
	if !strings.Contains(string(text), "COPY --from=build "+line[2]+" ") {
		return fmt.Errorf("%s builds %s and copies something else", dockerfile, line[2])
	}
	cmd := exec.Command("bash", "-c", fmt.Sprintf("%s -o %q %s", line[1], out, line[3]))
	cmd.Dir, cmd.Env = root, os.Environ()
	for _, m := range regexp.MustCompile(`(?m)^ENV (\S+=\S+)$`).FindAllStringSubmatch(string(text), -1) {
		cmd.Env = append(cmd.Env, m[1])
	}
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, text)
	}
	return nil
}

// The program of the image needs nothing of the image: no loader, no library.
func TestImageHoldsAStaticProgram(t *testing.T) {
	if runtime.GOOS == "linux" {
		file, err := elf.Open(binary)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = file.Close() }()
		for _, p := range file.Progs {
			if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
				t.Errorf("the program has a %s segment, so it is not static", p.Type)
			}
		}
	}
	cmd := exec.CommandContext(t.Context(), binary, "version")
	cmd.Env = []string{} // as from scratch
	if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "headgate ") {
		t.Errorf("headgate version: %v, %s", err, out)
	}
}

func TestImageRunsAsNobodyInParticular(t *testing.T) {
	text, err := os.ReadFile(dockerfile)
	if err != nil {
		t.Fatal(err)
	}
	stages := regexp.MustCompile(`(?m)^FROM `).Split(string(text), -1)
	last := stages[len(stages)-1]
	user := regexp.MustCompile(`(?m)^USER (\d+):(\d+)$`).FindStringSubmatch(last)
	if user == nil || user[1] == "0" || user[2] == "0" {
		t.Errorf("the last stage has no USER with numbers other than 0, which Kubernetes asks of runAsNonRoot:\n%s", last)
	}
	if regexp.MustCompile(`(?m)^(RUN|ADD) `).MatchString(last) {
		t.Error("the last stage runs something: its image has no shell")
	}
	module, err := os.ReadFile(root + "/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(module))[1]
	if !strings.HasPrefix(stages[1], "golang:"+want) {
		t.Errorf("the build stage is not golang:%s, as go.mod asks", want)
	}
}
