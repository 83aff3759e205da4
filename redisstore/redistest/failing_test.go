//go:build unix

package redistest_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/headgate/headgate/redisstore/redistest"
)

// A failingTB is a test that may fail without failing the one it is part of.
type failingTB struct {
	testing.TB
	fatal    string
	logged   strings.Builder
	cleanups []func()
}

func (f *failingTB) Helper()          {}
func (f *failingTB) Cleanup(c func()) { f.cleanups = append(f.cleanups, c) }
func (f *failingTB) Failed() bool     { return f.fatal != "" }
func (f *failingTB) Logf(format string, args ...any) {
	fmt.Fprintf(&f.logged, format+"\n", args...)
}

func (f *failingTB) Fatalf(format string, args ...any) {
	f.fatal = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// run runs body as the whole of a test f.
func (f *failingTB) run(body func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for i := len(f.cleanups) - 1; i >= 0; i-- {
				f.cleanups[i]()
			}
		}()
		body()
	}()
	<-done
}

func TestWithoutRedisEveryTwinFails(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	twins := map[string]func(testing.TB){
		"server":   func(tb testing.TB) { redistest.Start(tb) },
		"cluster":  func(tb testing.TB) { redistest.StartCluster(tb, 3) },
		"sentinel": func(tb testing.TB) { redistest.StartSentinel(tb) },
	}
	for name, start := range twins {
		t.Run(name, func(t *testing.T) {
			f := &failingTB{TB: t}
			f.run(func() { start(f) })
			want := "redis-server not found: run make deps, or apt-get install redis-server"
			if !strings.Contains(f.fatal, want) {
				t.Errorf("failed with %q, want %q", f.fatal, want)
			}
		})
	}
}

func TestOtherProgramByEnvironment(t *testing.T) {
	t.Setenv("REDISTEST_SERVER", "no-such-server")
	f := &failingTB{TB: t}
	f.run(func() { redistest.Start(f) })
	if !strings.Contains(f.fatal, "no-such-server not found") {
		t.Errorf("failed with %q", f.fatal)
	}
}

func TestWrongConfigFailsWithTheLog(t *testing.T) {
	f := &failingTB{TB: t}
	f.run(func() { redistest.Start(f, "maxmemory plenty") })
	if !strings.Contains(f.fatal, "ended at once") || !strings.Contains(f.fatal, "maxmemory plenty") {
		t.Errorf("failed with %q, want what redis-server said", f.fatal)
	}
}

func TestFailedTestShowsTheLog(t *testing.T) {
	f := &failingTB{TB: t}
	var pid int
	f.run(func() {
		s := redistest.Start(f)
		pid = s.Pid()
		s.Do("NO-SUCH-COMMAND")
		t.Error("went on after a failed command")
	})
	if !strings.Contains(f.fatal, "unknown command") {
		t.Errorf("failed with %q, want the error of Redis", f.fatal)
	}
	if !strings.Contains(f.logged.String(), "Ready to accept connections") {
		t.Errorf("the log of a failed test's server was not shown: %q", f.logged.String())
	}
	requireGone(t, []int{pid})
}
