package config

import (
	"fmt"
	"reflect"
)

// Fixed says which keys of next, read while running is in force, would need a restart: where the gateway listens and how, and the
// store. The number of replicas is not one of them. No problem = next may take the place of running.
func Fixed(running, next *Config) Problems {
	var ps Problems
	fixed := func(key string, same bool) {
		if !same {
			ps = append(ps, Problem{File: next.file, Line: max(1, next.lines[key]), Text: fmt.Sprintf(
				"%s differs from what is running and cannot change without a restart; want it as it was, or a restart", key)})
		}
	}
	fixed("listen", running.Listen == next.Listen)
	fixed("tls", reflect.DeepEqual(running.TLS, next.TLS))
	fixed("h2c", running.H2C == next.H2C)
	fixed("max_header", running.MaxHeader == next.MaxHeader)
	fixed("admin", running.Admin == next.Admin)
	fixed("store", reflect.DeepEqual(withoutReplicas(running.Store), withoutReplicas(next.Store)) && reflect.DeepEqual(running.Denials, next.Denials) &&
		running.Lease == next.Lease)
	return ps.sorted()
}

func withoutReplicas(r *Redis) *Redis {
	if r == nil {
		return nil
	}
	fixed := *r
	fixed.Replicas = 0
	return &fixed
}
