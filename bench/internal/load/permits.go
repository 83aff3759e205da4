package load

import "time"

// A Permits is the most that a limit grants one key over any interval of a length.
type Permits func(d time.Duration) int64

// grain is by how much an interval may be longer by the clock of a store that counts whole microseconds.
const grain = time.Microsecond

// Bucket is what a token bucket of a capacity permits, with count tokens more in each period.
func Bucket(capacity, count int64, period time.Duration) Permits {
	return func(d time.Duration) int64 {
		return capacity + int64(float64(count)*(d+grain).Seconds()/period.Seconds())
	}
}

// Windows is what windows of a length permit that do not overlap: an interval touches two of them besides those that it covers.
func Windows(count int64, length time.Duration) Permits {
	return func(d time.Duration) int64 { return count * (int64((d+grain)/length) + 2) }
}
