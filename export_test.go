package headgate

import "time"

// SetClock makes m read its time from now, which may step back.
func SetClock(m *Memory, now func() time.Time) {
	m.now, m.steady = func() int64 { return now().UnixMicro() }, false
}
