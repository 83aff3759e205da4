package outbound

import (
	"sync"
	"time"
)

// maxKnown bounds the keys of which a Transport remembers something. What is forgotten is found in the store again.
const maxKnown = 10_000

// A fact is what a process knows of one key, by its own clock. It spares asking the store for what would only have to be given back, keeps a
// pause while the store is away, and tells those who woke from a pause when it ended. While the store answers, it is the store that is right.
type fact struct {
	end    time.Time // of the pause
	noted  time.Time // when end was found out
	shared time.Time // end of the pause as the store knows it
	ready  time.Time // when the head of the line will ask again
}

// facts is what is known of keys. The zero value knows nothing.
type facts struct {
	mu    sync.Mutex
	byKey map[string]fact
	keep  time.Duration // how long after its end a pause still matters
}

// of returns what is known of key, the zero fact if nothing is.
func (f *facts) of(key string) fact {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byKey[key]
}

// change lets edit change what is known of key at now.
func (f *facts) change(key string, now time.Time, edit func(*fact)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one, known := f.byKey[key]
	edit(&one)
	if f.over(one, now) {
		delete(f.byKey, key)
		return
	}
	if f.byKey == nil {
		f.byKey = make(map[string]fact)
	}
	if !known && len(f.byKey) >= maxKnown {
		f.shrink(now)
	}
	f.byKey[key] = one
}

// over says whether a fact no longer matters.
func (f *facts) over(one fact, now time.Time) bool {
	return one.end.Add(f.keep).Before(now) && one.ready.Before(now)
}

// shrink forgets what no longer matters, and a tenth of the rest if that is not enough.
func (f *facts) shrink(now time.Time) {
	for key, one := range f.byKey {
		if f.over(one, now) {
			delete(f.byKey, key)
		}
	}
	excess := len(f.byKey) - maxKnown*9/10
	for key := range f.byKey {
		if excess--; excess < 0 {
			return
		}
		delete(f.byKey, key)
	}
}

// tell notes that a response which came at now asked for a pause of d.
func (f *facts) tell(key string, now time.Time, d time.Duration) {
	f.change(key, now, func(one *fact) {
		if end := now.Add(d); end.After(one.end) {
			one.end, one.noted = end, now
		}
	})
}

// settle notes what the store said at now, to a question of asked: a pause of d, 0 = none. It returns how long the pause still is, and
// whether the store does not know all of it.
func (f *facts) settle(key string, asked, now time.Time, d time.Duration) (left time.Duration, unshared bool) {
	if d == 0 && f.of(key) == (fact{}) { // as nearly always
		return 0, false
	}
	f.change(key, now, func(one *fact) {
		end := now.Add(d)
		if unshared = one.end.After(one.shared) && one.end.After(end); !unshared && d > 0 {
			one.end, one.shared, one.noted = end, end, now
		} else if !unshared && one.end.After(now) && one.noted.Before(asked) { // it was lifted
			one.end, one.shared = now, now
		}
		left = max(d, 0)
		if unshared {
			left = one.end.Sub(now)
		}
	})
	return left, unshared
}

// left returns how long the pause of key still is, as far as is known here.
func (f *facts) left(key string, now time.Time) time.Duration { return max(0, f.of(key).end.Sub(now)) }
