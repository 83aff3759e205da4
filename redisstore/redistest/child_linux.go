package redistest

import "syscall"

// childAttributes makes a server end with its test process, even when that one panics, times out or is killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
