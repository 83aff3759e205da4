// Package hold keeps the servers of package redistest for a program that is no test.
package hold

import (
	"fmt"
	"os"
	"runtime"
	"testing"
)

// An owner is what servers are tied to. It implements what redistest uses of a test.
type owner struct {
	testing.TB // nil
	fatal      error
	cleanups   []func()
}

func (o *owner) Helper()             {}
func (o *owner) Logf(string, ...any) {} // what a server that failed has logged; the reason is in the error
func (o *owner) Failed() bool        { return o.fatal != nil }
func (o *owner) Cleanup(f func())    { o.cleanups = append(o.cleanups, f) }

func (o *owner) Fatalf(format string, args ...any) {
	o.fatal = fmt.Errorf(format, args...)
	runtime.Goexit()
}

func (o *owner) TempDir() string {
	dir, err := os.MkdirTemp("", "headgate-bench-")
	if err != nil {
		o.Fatalf("hold: %w", err)
	}
	o.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Run calls body with an owner for servers, and ends them when body returns. A server that does not start ends body, and is the error that
// Run returns.
func Run(body func(testing.TB) error) error {
	o := new(owner)
	ended := make(chan error, 1)
	go func() {
		err := fmt.Errorf("ended by itself")
		defer func() {
			if o.fatal != nil {
				err = o.fatal
			}
			for i := len(o.cleanups) - 1; i >= 0; i-- {
				o.cleanups[i]()
			}
			ended <- err
		}()
		err = body(o)
	}()
	return <-ended
}
