package algorithm

// An Entry is one granted request of a [Log].
type Entry struct {
	At int64 // instant of the grant, in the log's own time
	N  int64 // tokens granted
}

// Log is the state of a SlidingLog: every granted request of the last Period, the oldest first. A request that was granted at t counts
// while now < t+Period. The zero Log is that of a key never seen.
//
// The log has a time of its own, which is the store's plus an offset: where the store's clock steps back, the offset grows by as much,
// so that no time passes for the log and no entry need be moved.
type Log struct {
	offset  int64
	used    int64
	period  int64 // Period at the last grant: after it the log no longer matters
	entries []Entry
	head    int // entries before it are free
}

// Len returns the number of entries kept, for those who account for memory.
func (l *Log) Len() int { return len(l.entries) - l.head }

// Dead returns the instant of the store's clock from which the log no longer matters.
func (l *Log) Dead() int64 {
	if l.Len() == 0 {
		return 0
	}
	return l.last() - l.offset + l.period
}

func (l *Log) last() int64 { return l.entries[len(l.entries)-1].At }

// Check says whether there is room for cost tokens at now, without granting them. It drops what has expired, unless cost is 0.
func (l *Log) Check(p Params, now, cost int64) Verdict {
	head, used := l.live(p, &now, cost > 0)
	v := Verdict{Remaining: max(0, p.Count-used)}
	if head < len(l.entries) {
		v.Reset = l.last() + min(p.Period, l.period) - now
	}
	if cost <= v.Remaining {
		v.Allowed = true
		return v
	}
	if v.Retry = Never; cost > p.Count {
		return v
	}
	need := used + cost - p.Count // so many must expire first
	for i := head; i < len(l.entries); i++ {
		if need -= l.entries[i].N; need <= 0 {
			v.Retry = min(l.entries[i].At+p.Period-now, v.Reset)
			break
		}
	}
	return v
}

// Grant records cost tokens at now, for which Check found room, and returns the verdict after it. Cost 0 records nothing.
func (l *Log) Grant(p Params, now, cost int64) Verdict {
	if cost == 0 {
		return l.Check(p, now, 0)
	}
	l.live(p, &now, true)
	l.used += cost
	l.period = p.Period
	if n := len(l.entries); n > l.head && l.entries[n-1].At == now {
		l.entries[n-1].N += cost
	} else {
		l.makeRoom()
		l.entries = append(l.entries, Entry{now, cost})
	}
	return Verdict{Allowed: true, Remaining: p.Count - l.used, Reset: p.Period}
}

// Refund gives back n tokens: those of the grant at takenAt, or with takenAt 0 those of the oldest grants, which is the choice that can
// never let more than Count through in any window, whichever grant it was.
func (l *Log) Refund(p Params, now, n, takenAt int64) {
	l.live(p, &now, true)
	takenAt += l.offset
	known := takenAt != l.offset
	kept := l.entries[:l.head]
	for _, e := range l.entries[l.head:] {
		if !known || e.At == takenAt {
			back := min(n, e.N)
			n, e.N, l.used = n-back, e.N-back, l.used-back
		}
		if e.N > 0 {
			kept = append(kept, e)
		}
	}
	l.entries = kept
}

// live brings now into the log's time and returns where the entries that still count begin, and their sum. With write it
// keeps what it found out: the offset, and that the others are gone.
func (l *Log) live(p Params, now *int64, write bool) (head int, used int64) {
	if l.Len() == 0 {
		if write {
			l.offset, l.used, l.entries, l.head = 0, 0, l.entries[:0], 0
		}
		return len(l.entries), 0
	}
	offset := max(l.offset, l.last()-*now)
	*now += offset
	head, used = l.head, l.used
	alive := *now < l.last()+l.period
	for head < len(l.entries) && (!alive || l.entries[head].At <= *now-p.Period) {
		used -= l.entries[head].N
		head++
	}
	if write {
		l.offset, l.head, l.used = offset, head, used
		if head == len(l.entries) { // as if never used: its time is the store's again
			*now -= offset
			l.offset, l.entries, l.head = 0, l.entries[:0], 0
		}
	}
	return head, used
}

// makeRoom moves the entries to the front when more than half are free, so that appending costs a constant on average.
func (l *Log) makeRoom() {
	if l.head > 16 && 2*l.head > len(l.entries) {
		l.entries = append(l.entries[:0], l.entries[l.head:]...)
		l.head = 0
	}
}
