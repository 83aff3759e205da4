package redisstore

import (
	"errors"
	"fmt"

	"github.com/headgate/headgate/internal/algorithm"
)

// read finds out about each request of the batch what the script, which answered v, says.
func (b *batch) read(v any) error {
	text, ok := v.(string)
	if !ok {
		return fmt.Errorf("script answered %T, want a string", v)
	}
	r := reader{text}
	now := r.number(7)
	for _, first := range b.requests {
		granted := first.times
		if first.verb != verbReset {
			granted = r.grants(first.times)
			for i := range first.items {
				first.items[i].raw = r.next(int(r.number(1)))
			}
		}
		n := 0
		for q := first; q != nil; q = q.next {
			q.now, q.granted = now, n < granted
			if n++; q.granted {
				q.later = int64(granted - n)
			}
			for i := range q.items {
				q.items[i].raw = first.items[i].raw
			}
		}
	}
	if r.text != "" || now < 0 {
		return errReply
	}
	return nil
}

// errReply says that what the script answered is not as long as it should be.
var errReply = errors.New("script answered too little or too much")

// A reader takes a reply apart. Of one that is too short it returns -1 or "", from then on.
type reader struct{ text string }

func (r *reader) next(n int) string {
	if n < 0 || n > len(r.text) {
		r.text = ""
		return ""
	}
	part := r.text[:n]
	r.text = r.text[n:]
	return part
}

func (r *reader) number(n int) int64 {
	part := r.next(n)
	if len(part) < n {
		return -1
	}
	return bigEndian(part)
}

// grants reads how often a request was granted that was asked for so many times.
func (r *reader) grants(times int) int {
	switch r.next(1) {
	case "a":
		return times
	case "p":
		return int(r.number(4))
	}
	return 0
}

// read works out what r found at the counter, from its state as the last of the takes that joined left it. A request that was granted
// or is one that gives back has charged it: then the state has all there is to tell.
func (it *item) read(r *request) (algorithm.Verdict, error) {
	if it.rule.isLog() {
		return it.readLog(r.granted)
	}
	state, err := decodeState(it.raw, it.rule.Params)
	if err != nil {
		return algorithm.Verdict{}, err
	}
	cost := it.cost
	if r.granted {
		state.A -= r.later * it.cost
		cost = 0
	}
	_, v := algorithm.Take(it.rule.Params, state, r.now, cost)
	if !r.granted && v.Allowed && cost > 0 { // it had room, and was not charged
		_, v = algorithm.Take(it.rule.Params, state, r.now, 0)
	}
	return v, nil
}

func (it *item) readLog(granted bool) (algorithm.Verdict, error) {
	if len(it.raw) != 21 {
		return algorithm.Verdict{}, fmt.Errorf("log state of %d bytes", len(it.raw))
	}
	v := algorithm.Verdict{Remaining: bigEndian(it.raw[:7]), Retry: bigEndian(it.raw[7:14]), Reset: bigEndian(it.raw[14:])}
	v.Allowed = granted || it.cost <= v.Remaining
	if it.cost > it.rule.Count {
		v.Retry = algorithm.Never
	}
	return v, nil
}

// decodeState reads a state as the script stores it, of a counter held to p.
func decodeState(raw string, p algorithm.Params) (algorithm.State, error) {
	switch len(raw) {
	case 0:
		return algorithm.State{}, nil
	case 14:
		s := algorithm.State{At: bigEndian(raw[:7]), Life: p.Life, A: bigEndian(raw[7:10]), B: bigEndian(raw[10:])}
		switch p.Kind {
		case algorithm.FixedWindow:
			s.Life, s.B = s.B, 0
		case algorithm.AlignedWindow, algorithm.SlidingWindow:
			s.Life -= s.At % p.Period
		}
		return s, nil
	case 22:
		return algorithm.State{At: bigEndian(raw[:7]), Life: bigEndian(raw[7:13]), A: bigEndian(raw[13:17]), B: bigEndian(raw[17:])}, nil
	case 27:
		return algorithm.State{At: bigEndian(raw[:7]), Life: bigEndian(raw[7:13]), A: bigEndian(raw[13:20]), B: bigEndian(raw[20:])}, nil
	}
	return algorithm.State{}, fmt.Errorf("state of %d bytes", len(raw))
}

// bigEndian reads a big-endian number below 2^56.
func bigEndian(raw string) int64 {
	n := int64(0)
	for i := range len(raw) {
		n = n<<8 | int64(raw[i])
	}
	return n
}
