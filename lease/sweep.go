package lease

import (
	"context"
	"time"
)

// sweep gives back, until the store is closed, what nobody has asked for lately.
func (s *Store) sweep(ctx context.Context) {
	defer close(s.swept)
	ticker := time.NewTicker(max(s.cfg.Lifetime/8, MinLifetime/2))
	defer ticker.Stop()
	for {
		select {
		case <-s.closing:
			return
		case now := <-ticker.C:
			s.giveBack(ctx, s.collect(now, s.cfg.Lifetime/4))
		}
	}
}

// collect takes out what is held of the counters that were not asked for in the last idle, and of those that gave way to others. Accounts
// that were not asked for in a whole lifetime are removed.
func (s *Store) collect(now time.Time, idle time.Duration) []parcel {
	var list []parcel
	for i := range s.table.list {
		list = s.table.list[i].collect(list, now, idle, s.cfg.Lifetime)
	}
	return list
}

func (s *shard) collect(list []parcel, now time.Time, idle, lifetime time.Duration) []parcel {
	s.mu.Lock()
	defer s.mu.Unlock()
	list = append(list, s.leaving...)
	s.leaving = nil
	for k, a := range s.accounts {
		quiet := now.Sub(a.used)
		if quiet < idle {
			continue
		}
		s.counts.Stranded += a.expire(now)
		list = a.pack(list, s.resets)
		if quiet >= lifetime && !a.pinned() {
			delete(s.accounts, k)
		}
	}
	return list
}
