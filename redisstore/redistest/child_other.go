//go:build !linux

package redistest

import "syscall"

// childAttributes is nothing special where the system cannot end a child with its parent: a test process that is killed leaves its
// servers behind.
func childAttributes() *syscall.SysProcAttr { return nil }
