package report

import "testing"

func TestFormat(t *testing.T) {
	for _, tt := range []struct {
		unit Unit
		x    float64
		want string
	}{
		{PerSecond, 0, "0/s"},
		{PerSecond, 283_456, "283,000/s"},
		{PerSecond, 1_234_567, "1,230,000/s"},
		{PerSecond, 999.6, "1,000/s"},
		{Seconds, 0, "0 ns"},
		{Seconds, 27.26e-9, "27.3 ns"},
		{Seconds, 999.9e-9, "1 µs"},
		{Seconds, 1.5e-6, "1.5 µs"},
		{Seconds, 0.0123, "12.3 ms"},
		{Seconds, 1, "1 s"},
		{Bytes, 85.04, "85 B"},
		{Count, 0.01234, "0.0123"},
		{Count, -1234, "-1,230"},
		{Times, 0.93, "0.93 ×"},
		{Times, 0.125, "0.125 ×"},
		{Times, 0, "0 ×"},
		{Times, 1.1, "1.10 ×"},
		{Times, 13.26, "13.3 ×"},
	} {
		if got := tt.unit.format(tt.x); got != tt.want {
			t.Errorf("%s of %v = %q, want %q", tt.unit, tt.x, got, tt.want)
		}
	}
}
