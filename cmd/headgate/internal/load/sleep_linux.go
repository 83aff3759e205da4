package load

import (
	"runtime"
	"syscall"
	"time"
)

// sleep waits for a short time in the kernel, whose timers are finer than those of the Go runtime by an order of magnitude. A process with a
// single processor leaves it to the runtime, since others could not run meanwhile.
func sleep(d time.Duration) {
	if runtime.GOMAXPROCS(0) == 1 {
		time.Sleep(d)
		return
	}
	t := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&t, nil) // a signal may end it early, and then the caller waits again
}
