package watch_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/watch"
)

// A scene is a watched file, in a bubble whose time passes only while everybody waits.
type scene struct {
	t    *testing.T
	dir  string
	path string
	w    *watch.Watcher
	mu   sync.Mutex
	got  []string // the content of each change, "error" for one that could not be read
}

// run plays a story about the file "f", which holds "first" in the beginning.
func run(t *testing.T, story func(*scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &scene{t: t, dir: t.TempDir()}
		s.path = filepath.Join(s.dir, "f")
		s.write("first")
		s.w = watch.New(watch.Interval, watch.Read(s.path), s.path)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go s.w.Run(ctx, func(f watch.Files) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if f.Err != nil {
				s.got = append(s.got, "error")
				return
			}
			s.got = append(s.got, string(f.Data[0]))
		})
		synctest.Wait()
		story(s)
	})
}

func (s *scene) write(text string) {
	s.t.Helper()
	if err := os.WriteFile(s.path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// looks lets the watcher look n times.
func (s *scene) looks(n int) {
	time.Sleep(time.Duration(n) * watch.Interval)
	synctest.Wait()
}

func (s *scene) want(changes ...string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.got, changes) {
		s.t.Errorf("changes %q, want %q", s.got, changes)
	}
}

func (s *scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func TestChangeIsHandedOnOnce(t *testing.T) {
	run(t, func(s *scene) {
		s.looks(3)
		s.want()
		s.write("second")
		s.looks(1)
		s.want() // it may be half of what will be there
		s.looks(5)
		s.want("second")
		s.write("third")
		s.looks(5)
		s.want("second", "third")
	})
}

// While somebody writes, nothing is handed on; then what is there in the end, once.
func TestRapidWrites(t *testing.T) {
	run(t, func(s *scene) {
		for i := range 20 {
			s.write(fmt.Sprint("part ", i))
			s.looks(1)
		}
		s.want()
		s.write("whole")
		s.looks(4)
		s.want("whole")
	})
}

func TestChangeThatIsTakenBack(t *testing.T) {
	run(t, func(s *scene) {
		s.write("second")
		s.looks(1)
		s.write("first")
		s.looks(3)
		s.want()
	})
}

func TestRename(t *testing.T) {
	run(t, func(s *scene) {
		for i := range 3 {
			next := filepath.Join(s.dir, "next")
			s.must(os.WriteFile(next, []byte(fmt.Sprint(i)), 0o600))
			s.must(os.Rename(next, s.path))
			s.looks(2)
		}
		s.want("0", "1", "2")
	})
}

// A file that is removed and made anew is unchanged if it was away for a moment, and otherwise changes twice.
func TestRemoved(t *testing.T) {
	run(t, func(s *scene) {
		s.must(os.Remove(s.path))
		s.looks(1)
		s.write("first")
		s.looks(3)
		s.want()
		s.must(os.Remove(s.path))
		s.looks(3)
		s.want("error")
		s.write("first")
		s.looks(3)
		s.want("error", "first")
	})
}

// Kubernetes shows a volume's files through a link "..data", which it leads to a new directory as a whole.
func TestSymlinkSwap(t *testing.T) {
	run(t, func(s *scene) {
		version := func(name, text string) {
			dir := filepath.Join(s.dir, name)
			s.must(os.Mkdir(dir, 0o700))
			s.must(os.WriteFile(filepath.Join(dir, "f"), []byte(text), 0o600))
			s.must(os.Symlink(name, filepath.Join(s.dir, "..data_tmp")))
			s.must(os.Rename(filepath.Join(s.dir, "..data_tmp"), filepath.Join(s.dir, "..data")))
		}
		version("..1", "first")
		s.must(os.Remove(s.path))
		s.must(os.Symlink(filepath.Join("..data", "f"), s.path))
		s.looks(3)
		s.want()
		version("..2", "second")
		s.must(os.RemoveAll(filepath.Join(s.dir, "..1")))
		s.looks(2)
		version("..3", "third")
		s.looks(2)
		s.want("second", "third")
	})
}

// A look that was asked for does not wait, and hands on what is there even if it is what it was.
func TestLook(t *testing.T) {
	run(t, func(s *scene) {
		s.w.Look()
		synctest.Wait()
		s.want("first")
		s.write("second")
		s.w.Look()
		s.w.Look() // for nothing new
		synctest.Wait()
		s.looks(3)
		s.want("first", "second", "second")
	})
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	for _, tt := range []struct{ a, b string }{{"x", "yz"}, {"xy", "z"}} {
		if err := os.WriteFile(a, []byte(tt.a), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(b, []byte(tt.b), 0o600); err != nil {
			t.Fatal(err)
		}
		f := watch.Read(a, b)
		if f.Err != nil || len(f.Data) != 2 || string(f.Data[1]) != tt.b || f.Hash == watch.Read(a).Hash || f.Hash == watch.Read(b, a).Hash {
			t.Errorf("%+v", f)
		}
	}
	if sum := sha256.Sum256([]byte("xy")); watch.Read(a).Hash != hex.EncodeToString(sum[:]) {
		t.Errorf("hash of one file %s, want its SHA-256", watch.Read(a).Hash)
	}
	if f := watch.Read(a, filepath.Join(dir, "none")); f.Err == nil || f.Data != nil || f.Hash == "" {
		t.Errorf("a file that is not there: %+v", f)
	}
}
