//go:build !linux

package load

import "time"

// sleep waits for a short time.
func sleep(d time.Duration) { time.Sleep(d) }
