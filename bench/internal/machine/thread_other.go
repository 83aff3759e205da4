//go:build !linux

package machine

import "time"

// ThreadTime returns the CPU time of the calling thread, which does not pass while the system runs something else, and whether it is known.
func ThreadTime() (time.Duration, bool) { return 0, false }
