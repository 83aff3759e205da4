package headgate

import "time"

// SetClock makes m read its time from now.
func SetClock(m *Memory, now func() time.Time) {
	m.now = func() int64 { return now().UnixMicro() }
}
