package meter_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/meter"
)

func TestTopKeys(t *testing.T) {
	top := meter.NewTopKeys()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	add := func(at time.Duration, tenant string, allowed bool, times int) {
		for range times {
			top.Add(start.Add(at), tenant, allowed)
		}
	}
	most := func(at time.Duration) string {
		m := top.Most(start.Add(at), 2)
		return fmt.Sprint(m.Since.Sub(start), m.Allowed, m.Denied)
	}
	add(0, "acme", true, 3)
	add(0, "globex", true, 5)
	add(0, "initech", true, 1)
	add(time.Minute, "initech", false, 2)
	if got, want := most(time.Minute), "0s [{globex 5 0} {acme 3 0}] [{initech 2 0}]"; got != want {
		t.Errorf("in one window: %s, want %s", got, want)
	}
	add(6*time.Minute, "acme", true, 4)
	if got, want := most(7*time.Minute), "0s [{acme 7 0} {globex 5 0}] [{initech 2 0}]"; got != want {
		t.Errorf("over two windows: %s, want %s", got, want)
	}
	if got, want := most(11*time.Minute), "6m0s [{acme 4 0}] []"; got != want {
		t.Errorf("a window later: %s, want %s", got, want)
	}
	if got, want := most(time.Hour), "1h0m0s [] []"; got != want {
		t.Errorf("long after: %s, want %s", got, want)
	}
}

// An attack with names that nobody knows does not drown a tenant that is denied often, nor fill the memory.
func TestTopKeysUnderAttack(t *testing.T) {
	top := meter.NewTopKeys()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i := range 50_000 {
		top.Add(now, fmt.Sprintf("%d%s", i, strings.Repeat("x", 1000)), false)
		if i%100 == 0 {
			top.Add(now, "acme", false)
		}
	}
	tops := top.Most(now, 1<<20)
	if len(tops.Denied) > 512 {
		t.Errorf("%d names held, want at most 512", len(tops.Denied))
	}
	if first := tops.Denied[0]; first.Tenant != "acme" || first.Count < 500 || first.Count-first.Excess > 500 {
		t.Errorf("first is %.20s with %d (excess %d), want acme with 500", first.Tenant, first.Count, first.Excess)
	}
	for _, k := range tops.Denied {
		if len(k.Tenant) > 256 {
			t.Fatalf("a name of %d bytes is held", len(k.Tenant))
		}
	}
}

func TestTopKeysConcurrently(t *testing.T) {
	top := meter.NewTopKeys()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 1000 {
				top.Add(now, fmt.Sprint("t", i%10), w%2 == 0)
				if i%100 == 0 {
					top.Most(now, 5)
				}
			}
		})
	}
	wg.Wait()
	tops := top.Most(now, 100)
	for _, list := range [][]meter.Top{tops.Allowed, tops.Denied} {
		sum := uint64(0)
		for _, k := range list {
			sum += k.Count
		}
		if len(list) != 10 || sum != 4000 {
			t.Errorf("%d names with %d decisions, want 10 with 4000", len(list), sum)
		}
	}
}
