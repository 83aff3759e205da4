package algorithm

import "slices"

// Clone returns a log that shares nothing with l.
func (l *Log) Clone() Log {
	c := *l
	c.entries = slices.Clone(l.entries)
	return c
}
