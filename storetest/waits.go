package storetest

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// testRetryAfter: whoever was denied and is alone is denied until RetryAfter has passed by the store's clock, and allowed from then on. The
// instants of the decisions say what that clock shows.
func testRetryAfter(t *testing.T, store headgate.Store) {
	for _, a := range algorithms {
		t.Run(a.String(), func(t *testing.T) {
			s := subject{store, newKey(t), soon(a)}
			for range 3 {
				retryUntilAllowed(t, s, exhaust(t, s))
			}
		})
	}
}

// exhaust takes until it is denied. While it does, time passes and tokens come back, but slower than they are taken.
func exhaust(t *testing.T, s subject) headgate.Decision {
	t.Helper()
	for range 1_000_000 {
		if d := s.take(t, 1); !d.Allowed {
			return d
		}
	}
	t.Fatalf("%v never denied", s.limit)
	return headgate.Decision{}
}

func retryUntilAllowed(t *testing.T, s subject, denied headgate.Decision) {
	t.Helper()
	due := denied.At.Add(denied.RetryAfter)
	for wait := denied.RetryAfter; ; {
		time.Sleep(wait)
		d := s.take(t, 1)
		if early := d.At.Before(due); d.Allowed == early {
			t.Fatalf("denied at %v for %v, and at %v: %+v", denied.At, denied.RetryAfter, d.At, d)
		}
		if d.Allowed {
			return
		}
		if wait = due.Sub(d.At); d.RetryAfter != wait {
			t.Fatalf("RetryAfter %v at %v, want the rest of the wait, %v", d.RetryAfter, d.At, wait)
		}
	}
}
