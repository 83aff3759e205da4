package machine_test

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/headgate/headgate/bench/internal/machine"
)

func TestEnvironment(t *testing.T) {
	e := machine.Environment("github.com/headgate/headgate/bench/internal/nothing")
	if e.Cores != runtime.NumCPU() || !strings.HasPrefix(e.Go, runtime.Version()) || len(e.Modules) != 0 {
		t.Errorf("environment %+v", e)
	}
	for name, fact := range map[string]string{"CPU": e.CPU, "memory": e.Memory, "kernel": e.Kernel, "Redis": e.Redis, "Headgate": e.Headgate} {
		if fact == "" {
			t.Errorf("nothing is said of %s", name)
		}
		if host, err := os.Hostname(); err == nil && host != "" && host != "localhost" && strings.Contains(fact, host) {
			t.Errorf("%s names the host: %s", name, fact)
		}
	}
}

func TestThreadTime(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, known := machine.ThreadTime()
	if !known {
		if runtime.GOOS == "linux" {
			t.Error("unknown on Linux")
		}
		return
	}
	x := uint64(1)
	for range 1_000_000 {
		x = x*6364136223846793005 + 1
	}
	if after, _ := machine.ThreadTime(); after <= before || x == 0 {
		t.Errorf("from %v to %v", before, after)
	}
}

func TestResident(t *testing.T) {
	if runtime.GOOS != "linux" {
		return
	}
	before := machine.Resident()
	touched := make([]byte, 64<<20)
	for i := range touched {
		touched[i] = 1
	}
	if after := machine.Resident(); before <= 0 || after < before+32<<20 {
		t.Errorf("from %d to %d bytes with 64 MiB more", before, after)
	}
	runtime.KeepAlive(touched)
	if machine.Available() <= 0 {
		t.Error("no memory is available")
	}
}
