package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/headgate/headgate/bench/internal/hold"
	"github.com/headgate/headgate/bench/internal/worker"
)

var jobs = map[string]worker.Job{
	"echo": func(_ context.Context, spec []byte, out io.Writer) error {
		var n int
		if err := json.Unmarshal(spec, &n); err != nil {
			return err
		}
		return json.NewEncoder(out).Encode(n + 1)
	},
	"fail": func(context.Context, []byte, io.Writer) error { return errors.New("cannot do it") },
	"serve": func(ctx context.Context, spec []byte, out io.Writer) error {
		var file string
		if err := json.Unmarshal(spec, &file); err != nil {
			return err
		}
		_, err := fmt.Fprintln(out, "host:1")
		<-ctx.Done()
		return errors.Join(err, os.WriteFile(file, []byte("ended"), 0o600))
	},
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == worker.Word {
		os.Exit(worker.Main(os.Args[2:], jobs, os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func TestRun(t *testing.T) {
	var n int
	if err := worker.Run(t.Context(), "echo", 41, &n); err != nil || n != 42 {
		t.Errorf("%d, %v; want 42", n, err)
	}
	if err := worker.Run(t.Context(), "fail", nil, &n); err == nil || !strings.Contains(err.Error(), "cannot do it") {
		t.Errorf("error %v, want what the worker says", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := worker.Run(ctx, "echo", 41, &n); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}

// A server ends in good order with whoever it is tied to.
func TestServe(t *testing.T) {
	file := t.TempDir() + "/end"
	err := hold.Run(func(tb testing.TB) error {
		address, err := worker.Serve(t.Context(), tb, "serve", file)
		if address != "host:1" {
			t.Errorf("address %q, want host:1", address)
		}
		if _, err := os.Stat(file); err == nil {
			t.Error("it ended at once")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); string(text) != "ended" || err != nil {
		t.Errorf("it left %q, %v", text, err)
	}
}

func TestServeFails(t *testing.T) {
	_ = hold.Run(func(tb testing.TB) error {
		if _, err := worker.Serve(t.Context(), tb, "fail", nil); err == nil || !strings.Contains(err.Error(), "cannot do it") {
			t.Errorf("error %v, want what the worker says", err)
		}
		return nil
	})
}

func TestNoSuchWorker(t *testing.T) {
	for _, args := range [][]string{nil, {"echo"}, {"nothing", "1"}, {"echo", "1", "2"}} {
		var errs bytes.Buffer
		if code := worker.Main(args, jobs, strings.NewReader(""), io.Discard, &errs); code != 2 || errs.Len() == 0 {
			t.Errorf("%q: code %d, %q", args, code, &errs)
		}
	}
}
