package redisstore

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/algorithm"
)

// The verbs of the script.
const (
	verbTake   = 1
	verbCheck  = 2 // decide, and charge nothing
	verbRefund = 3
	verbReset  = 4
)

// maxCost stands for every cost that no limit has room for: the script's numbers stay below 2^53.
const maxCost = 1 << 52

// An item is what a request asks of one counter: charges of the same key and limit are one.
type item struct {
	field  string
	shard  int
	params algorithm.Params
	named  bool
	cost   int64
}

// A limit is the numbers that a counter is held to, and whether they may change under its name.
type limit struct {
	algorithm.Params
	named bool
}

// namedLimit marks, in the script's byte for the algorithm, a limit that has a name.
const namedLimit = 8

// A tableRef names a pair of hashes.
type tableRef struct{ shard, class int }

// A table is one pair of hashes that a batch reads, and the fields it wants of it: those of limits with a name come first.
type table struct {
	tableRef
	named, plain []string
}

// A place says where a counter is: a field of a table, or a log.
type place struct {
	table int // -1 for a log
	named bool
	index int
}

// An entry is one charge of a request as the script wants it.
type entry struct {
	place place
	limit int
	cost  int64
}

// A request is a verb and what it is about.
type request struct {
	verb    byte
	takenAt int64
	entries []entry
}

// A batch is what one call of the script decides: requests, in order, whose counters must share a hash slot on a Cluster. A batch must
// not hold one named limit with numbers that put it into different classes.
type batch struct {
	layout   *layout
	tables   []table
	tableOf  map[tableRef]int
	places   map[counter]place
	logs     []string
	limits   []limit
	limitOf  map[limit]int
	requests []request
}

// A counter is a field within a table; the class is -1 for a log.
type counter struct {
	ref   tableRef
	field string
}

func newBatch(l *layout) *batch {
	return &batch{layout: l, tableOf: map[tableRef]int{}, places: map[counter]place{}, limitOf: map[limit]int{}}
}

// add appends a request. takenAt matters to refunds: microseconds, 0 = not known.
func (b *batch) add(verb byte, takenAt int64, items []item) {
	r := request{verb: verb, takenAt: takenAt, entries: make([]entry, len(items))}
	for i, it := range items {
		r.entries[i] = entry{place: b.place(it), limit: b.limit(limit{it.params, it.named}), cost: min(it.cost, maxCost)}
	}
	b.requests = append(b.requests, r)
}

func (b *batch) limit(l limit) int {
	i, ok := b.limitOf[l]
	if !ok {
		i = len(b.limits)
		b.limits = append(b.limits, l)
		b.limitOf[l] = i
	}
	return i
}

// place finds or makes the place of a counter in this batch.
func (b *batch) place(it item) place {
	c := counter{tableRef{it.shard, -1}, it.field}
	log := it.params.Kind == algorithm.SlidingLog
	if !log {
		c.ref.class = classOf(it.params)
	}
	p, ok := b.places[c]
	if ok {
		return p
	}
	if log {
		p = place{table: -1, index: len(b.logs)}
		b.logs = append(b.logs, b.layout.logKey(it.shard, it.field))
	} else {
		t := b.table(c.ref)
		p = place{table: t, named: it.named}
		fields := &b.tables[t].plain
		if it.named {
			for other := range classes { // where it may lie if the limit's numbers have changed
				b.table(tableRef{it.shard, other})
			}
			fields = &b.tables[t].named // the tables may have moved
		}
		p.index = len(*fields)
		*fields = append(*fields, it.field)
	}
	b.places[c] = p
	return p
}

func (b *batch) table(ref tableRef) int {
	t, ok := b.tableOf[ref]
	if !ok {
		t = len(b.tables)
		b.tables = append(b.tables, table{tableRef: ref})
		b.tableOf[ref] = t
	}
	return t
}

// order returns the tables as the script wants them: those without fields last.
func (b *batch) order() []int {
	order := make([]int, 0, len(b.tables))
	for _, used := range [...]bool{true, false} {
		for i := range b.tables {
			if b.tables[i].size() > 0 == used {
				order = append(order, i)
			}
		}
	}
	return order
}

func (t *table) size() int { return len(t.named) + len(t.plain) }

// keys returns the KEYS of the script.
func (b *batch) keys() []string {
	keys := make([]string, 0, 2*len(b.tables)+len(b.logs))
	for _, i := range b.order() {
		t := &b.tables[i]
		hashes := &b.layout.hashes[t.shard]
		keys = append(keys, hashes[2*t.class], hashes[2*t.class+1])
	}
	return append(keys, b.logs...)
}

// args returns the ARGV of the script, described there.
func (b *batch) args(mode byte) []any {
	head := append(make([]byte, 0, 9), mode)
	head = binary.BigEndian.AppendUint32(head, uint32(len(b.layout.tags)))
	head = binary.BigEndian.AppendUint16(head, uint16(len(b.tables)))
	head = binary.BigEndian.AppendUint16(head, uint16(len(b.logs)))

	tables := make([]byte, 0, 13*len(b.tables))
	base := make([]int, len(b.tables)) // fields before those of the table
	fields := 0
	order := b.order()
	for _, i := range order {
		t := &b.tables[i]
		base[i] = fields
		n := t.size()
		fields += n
		tables = appendUint56(tables, classes[t.class].generation.Microseconds())
		tables = binary.BigEndian.AppendUint16(tables, uint16(t.shard))
		tables = binary.BigEndian.AppendUint16(tables, uint16(n))
		tables = binary.BigEndian.AppendUint16(tables, uint16(len(t.named)))
	}
	limits := make([]byte, 0, 29*len(b.limits))
	for _, p := range b.limits {
		kind := byte(p.Kind)
		if p.named {
			kind |= namedLimit
		}
		limits = append(limits, kind)
		for _, n := range [...]int64{p.Count, p.Period, p.Capacity, p.Life} {
			limits = appendUint56(limits, n)
		}
	}
	args := make([]any, 0, 4+fields)
	args = append(args, head, tables, limits, b.program(base, fields))
	for _, i := range order {
		for _, f := range b.tables[i].named {
			args = append(args, f)
		}
		for _, f := range b.tables[i].plain {
			args = append(args, f)
		}
	}
	return args
}

// program encodes the requests. Fields are numbered from 1, table by table, and logs after them.
func (b *batch) program(base []int, fields int) []byte {
	program := make([]byte, 0, 32*len(b.requests))
	for _, r := range b.requests {
		program = append(program, r.verb)
		program = binary.BigEndian.AppendUint16(program, uint16(len(r.entries)))
		for _, e := range r.entries {
			number := fields + e.place.index
			if t := e.place.table; t >= 0 {
				number = base[t] + e.place.index
				if !e.place.named {
					number += len(b.tables[t].named)
				}
			}
			program = binary.BigEndian.AppendUint16(program, uint16(number+1))
			program = binary.BigEndian.AppendUint16(program, uint16(e.limit+1))
			program = appendUint56(program, e.cost)
			program = appendUint56(program, r.takenAt)
		}
	}
	return program
}

func appendUint56(b []byte, n int64) []byte {
	var buf [8]byte
	binary.BigEndian.PutUint64(buf[:], uint64(n))
	return append(b, buf[1:]...)
}

// reply is what the script answered.
type reply struct {
	now      int64
	verdicts string
	states   []any // in the order of the requests' entries, but for those of resets
}

func parseReply(v any) (reply, error) {
	list, ok := v.([]any)
	if !ok || len(list) < 2 {
		return reply{}, fmt.Errorf("script answered %T, want a list", v)
	}
	now, ok := list[0].(int64)
	if !ok {
		return reply{}, fmt.Errorf("script answered %T for the time", list[0])
	}
	verdicts, ok := list[1].(string)
	if !ok {
		return reply{}, fmt.Errorf("script answered %T for the verdicts", list[1])
	}
	return reply{now, verdicts, list[2:]}, nil
}

// verdict works out what a charge found from its counter's state as the script left it. granted says that the request was, or that it was
// given back: then the state has all there is to tell.
func (r reply) verdict(i int, it item, granted bool) (algorithm.Verdict, error) {
	raw, ok := r.states[i].(string)
	if !ok {
		return algorithm.Verdict{}, fmt.Errorf("script answered %T for a state", r.states[i])
	}
	if it.params.Kind == algorithm.SlidingLog {
		return logVerdict(raw, it, granted)
	}
	state, err := decodeState(raw, it.params)
	if err != nil {
		return algorithm.Verdict{}, err
	}
	cost := it.cost
	if granted { // the state is that after the charge
		cost = 0
	}
	_, v := algorithm.Take(it.params, state, r.now, cost)
	if !granted && v.Allowed && cost > 0 { // it had room, and was not charged
		_, v = algorithm.Take(it.params, state, r.now, 0)
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

func logVerdict(raw string, it item, granted bool) (algorithm.Verdict, error) {
	if len(raw) != 21 {
		return algorithm.Verdict{}, fmt.Errorf("log state of %d bytes", len(raw))
	}
	v := algorithm.Verdict{Remaining: bigEndian(raw[:7]), Retry: bigEndian(raw[7:14]), Reset: bigEndian(raw[14:])}
	v.Allowed = granted || it.cost <= v.Remaining
	if it.cost > it.params.Count {
		v.Retry = algorithm.Never
	}
	return v, nil
}

// bigEndian reads a big-endian number below 2^56.
func bigEndian(raw string) int64 {
	n := int64(0)
	for i := range len(raw) {
		n = n<<8 | int64(raw[i])
	}
	return n
}

// state puts a verdict about a charge into the terms of the caller.
func state(limit headgate.Limit, v algorithm.Verdict) headgate.State {
	s := headgate.State{Limit: limit, Allowed: v.Allowed, Remaining: v.Remaining, ResetAfter: time.Duration(v.Reset) * time.Microsecond}
	if s.RetryAfter = headgate.Never; v.Retry != algorithm.Never {
		s.RetryAfter = time.Duration(v.Retry) * time.Microsecond
	}
	return s
}
