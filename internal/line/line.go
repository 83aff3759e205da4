// Package line keeps those who wait for something in lines: one for each key, in order of arrival. Nobody in it has a goroutine.
package line

import "sync"

// Lines are the queues of those who wait, one for each key that anybody waits for. The zero value has none. Safe for concurrent use.
type Lines struct {
	mu     sync.Mutex
	byKey  map[string]*queue
	unused *queue // one kept for reuse
}

type queue struct {
	turns []*Turn // the head is the one whose turn it is
}

// A Turn is a place in a line.
type Turn struct {
	lines *Lines
	key   string
	queue *queue
	place int
	up    chan struct{}
}

// Join takes the last place in the line of key. Leave must be called when done.
func (l *Lines) Join(key string) *Turn {
	t := &Turn{lines: l, key: key, up: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byKey == nil {
		l.byKey = make(map[string]*queue)
	}
	q := l.byKey[key]
	if q == nil {
		if q, l.unused = l.unused, nil; q == nil {
			q = new(queue)
		}
		l.byKey[key] = q
	}
	t.queue = q
	q.turns = append(q.turns, t)
	t.place = len(q.turns)
	if len(q.turns) == 1 {
		close(t.up)
	}
	return t
}

// Up returns a channel that is closed when it is the turn of t.
func (t *Turn) Up() <-chan struct{} { return t.up }

// Place returns which place t took when it joined, 1 being the head's.
func (t *Turn) Place() int { return t.place }

// Line returns how many stand in the line, t included. It is for those who have not left.
func (t *Turn) Line() int {
	t.lines.mu.Lock()
	defer t.lines.mu.Unlock()
	return len(t.queue.turns)
}

// Leave takes t out of the line, wherever it stands, and lets a new head have its turn. It must be called once.
func (t *Turn) Leave() {
	l, q := t.lines, t.queue
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range q.turns {
		if q.turns[i] != t {
			continue
		}
		q.turns = append(q.turns[:i], q.turns[i+1:]...)
		if i == 0 && len(q.turns) > 0 {
			close(q.turns[0].up)
		}
		break
	}
	if len(q.turns) == 0 {
		delete(l.byKey, t.key)
		l.unused = q
	}
}
