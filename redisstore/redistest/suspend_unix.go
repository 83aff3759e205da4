//go:build unix

package redistest

import "syscall"

// suspend stops a process, or lets it go on.
func suspend(pid int, stop bool) error {
	if stop {
		return syscall.Kill(pid, syscall.SIGSTOP)
	}
	return syscall.Kill(pid, syscall.SIGCONT)
}
