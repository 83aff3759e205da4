package redisstore

import (
	"encoding/binary"
	"slices"
	"strconv"
)

// Bounds of a batch. Redis serves nobody else while it decides one.
const (
	maxEntries = 512     // items
	maxBytes   = 1 << 18 // of fields
)

// maxCost stands for every cost that no limit has room for: the script's numbers stay below 2^53.
const maxCost = 1 << 52

// A tableRef names a pair of hashes.
type tableRef struct{ shard, class int }

// A table is one pair of hashes that a batch reads, and the fields it wants of it: those of limits with a name come first.
type table struct {
	tableRef
	named, plain []any // the fields, as the client takes them
	base         int   // how many fields are before its own
}

func (t *table) size() int { return len(t.named) + len(t.plain) }

// A place says where in a batch a counter is: a field of a table, or a log.
type place struct {
	table int // -1 for a log
	named bool
	index int
}

// A seat is what a batch knows of a counter.
type seat struct {
	place place
	class int
	last  *request // that asks for something of it
}

// A batch is what one call of the script decides: requests, in order, whose counters must share a hash slot on a Cluster. It can be
// used again.
type batch struct {
	layout   *layout
	tables   []table
	tableOf  map[tableRef]int
	seats    []seat
	seatOf   map[string]int // by field
	logs     []string
	rules    []*rule
	ruleOf   map[*rule]int
	requests []*request // without those that joined an earlier one
	count    int        // with those
	leads    bool       // no call was under way when it set out
	entries  int
	bytes    int
	order    []int // of the tables, as the script wants them
}

func newBatch(l *layout) *batch {
	return &batch{layout: l, tableOf: map[tableRef]int{}, seatOf: map[string]int{}, ruleOf: map[*rule]int{}}
}

// clear makes the batch empty. It keeps the memory.
func (b *batch) clear() {
	for i := range b.tables {
		clear(b.tables[i].named)
		clear(b.tables[i].plain)
	}
	clear(b.tableOf)
	clear(b.seats)
	clear(b.seatOf)
	clear(b.ruleOf)
	clear(b.requests)
	b.tables, b.seats, b.logs, b.rules = b.tables[:0], b.seats[:0], b.logs[:0], b.rules[:0]
	b.requests = b.requests[:0]
	b.count, b.leads, b.entries, b.bytes = 0, false, 0, 0
}

// add appends r, or returns false if it must go with another batch: this one is full, or has use of a limit of the same name with numbers
// that put it into another class, which one call of the script cannot serve. An empty batch takes any request.
func (b *batch) add(r *request) bool {
	r.times, r.next, r.last = 1, nil, r
	if first := b.first(r); first != nil {
		first.times++
		first.last.next = r
		first.last = r
		b.count++
		return true
	}
	if !b.fits(r) {
		return false
	}
	for i := range r.items {
		b.seat(r, &r.items[i])
	}
	b.requests = append(b.requests, r)
	b.count++
	b.entries += len(r.items)
	return true
}

// first returns the request that r can join: nothing that came after it has to do with r's counters.
func (b *batch) first(r *request) *request {
	if r.verb != verbTake {
		return nil
	}
	s := b.known(&r.items[0])
	if s == nil || !r.joins(s.last) {
		return nil
	}
	for i := range r.items[1:] {
		if b.known(&r.items[1+i]).last != s.last {
			return nil
		}
	}
	return s.last
}

func (b *batch) fits(r *request) bool {
	if len(b.requests) == 0 {
		return true
	}
	if b.entries+len(r.items) > maxEntries || b.bytes > maxBytes {
		return false
	}
	for i := range r.items {
		it := &r.items[i]
		if s := b.known(it); s != nil && s.class != it.rule.class {
			return false
		}
	}
	return true
}

// seat finds or makes the place of r's item.
func (b *batch) seat(r *request, it *item) {
	if _, ok := b.ruleOf[it.rule]; !ok {
		b.ruleOf[it.rule] = len(b.rules)
		b.rules = append(b.rules, it.rule)
	}
	s := b.known(it)
	if s == nil {
		b.seatOf[it.field] = len(b.seats)
		b.seats = append(b.seats, seat{class: it.rule.class, place: b.place(it)})
		b.bytes += len(it.field)
		s = &b.seats[len(b.seats)-1]
	}
	it.place, s.last = s.place, r
}

// known returns what the batch knows of the item's counter, until it learns of another; nil if nothing.
func (b *batch) known(it *item) *seat {
	if i, ok := b.seatOf[it.field]; ok {
		return &b.seats[i]
	}
	return nil
}

// place makes a place for a counter that the batch has none of.
func (b *batch) place(it *item) place {
	if it.rule.isLog() {
		b.logs = append(b.logs, b.layout.logKey(it.shard, it.field))
		return place{table: -1, index: len(b.logs) - 1}
	}
	t := b.table(tableRef{it.shard, it.rule.class})
	if !it.rule.named {
		fields := &b.tables[t].plain
		*fields = append(*fields, it.field)
		return place{table: t, index: len(*fields) - 1}
	}
	for other := range classes { // where it may lie if the limit's numbers have changed
		b.table(tableRef{it.shard, other})
	}
	fields := &b.tables[t].named
	*fields = append(*fields, it.field)
	return place{table: t, named: true, index: len(*fields) - 1}
}

func (b *batch) table(ref tableRef) int {
	t, ok := b.tableOf[ref]
	if ok {
		return t
	}
	t = len(b.tables)
	if t < cap(b.tables) {
		b.tables = b.tables[:t+1] // one that was used before, with its memory
	} else {
		b.tables = append(b.tables, table{})
	}
	old := &b.tables[t]
	*old = table{tableRef: ref, named: old.named[:0], plain: old.plain[:0]}
	b.tableOf[ref] = t
	return t
}

// command returns what conn sends: the keys and arguments of the script, described there. Nothing in it is used again: hooks of the client may
// keep it.
func (b *batch) command(mode byte) []any {
	b.sort()
	call := make([]any, 0, 6+2*len(b.tables)+len(b.logs)+len(b.seats))
	call = append(call, nil, nil, 2*len(b.tables)+len(b.logs))
	for _, i := range b.order {
		t := &b.tables[i]
		hashes := &b.layout.hashes[t.shard]
		call = append(call, hashes[2*t.class], hashes[2*t.class+1])
	}
	for _, key := range b.logs {
		call = append(call, key)
	}
	call = append(call, b.program(mode))
	for _, i := range b.order {
		call = append(append(call, b.tables[i].named...), b.tables[i].plain...)
	}
	return call
}

// sort puts the tables in the order that the script wants: those without fields last.
func (b *batch) sort() {
	b.order = b.order[:0]
	fields := 0
	for _, used := range [...]bool{true, false} {
		for i := range b.tables {
			if t := &b.tables[i]; t.size() > 0 == used {
				t.base = fields
				fields += t.size()
				b.order = append(b.order, i)
			}
		}
	}
}

// program encodes tables, rules and requests.
func (b *batch) program(mode byte) []byte {
	p := make([]byte, 0, 16+13*len(b.tables)+len(rule{}.code)*len(b.rules)+10*len(b.requests)+11*b.entries)
	p = append(p, mode)
	for _, n := range [...]int{len(b.tables), len(b.logs), len(b.rules)} {
		p = binary.BigEndian.AppendUint16(p, uint16(n))
	}
	p = append(append(append(p, '/'), strconv.Itoa(len(b.layout.tags))...), 0)
	fields := 0
	for _, i := range b.order {
		t := &b.tables[i]
		fields += t.size()
		p = appendUint56(p, classes[t.class].generation.Microseconds())
		p = binary.BigEndian.AppendUint16(p, uint16(t.shard))
		p = binary.BigEndian.AppendUint16(p, uint16(t.size()))
		p = binary.BigEndian.AppendUint16(p, uint16(len(t.named)))
	}
	for _, r := range b.rules {
		p = append(p, r.code[:]...)
	}
	for _, r := range b.requests {
		p = append(p, r.verb)
		p = binary.BigEndian.AppendUint16(p, uint16(len(r.items)))
		if r.verb == verbRefund || r.verb == verbGiveBack {
			p = appendUint56(p, r.takenAt)
		} else {
			p = appendUint56(p, int64(r.times))
		}
		for i := range r.items {
			p = b.writeItem(p, &r.items[i], fields)
		}
	}
	return p
}

// writeItem encodes one item. Fields are numbered from 1, table by table, and logs after them.
func (b *batch) writeItem(p []byte, it *item, fields int) []byte {
	number := fields + it.place.index
	if it.place.table >= 0 {
		t := &b.tables[it.place.table]
		number = t.base + it.place.index
		if !it.place.named {
			number += len(t.named)
		}
	}
	p = binary.BigEndian.AppendUint16(p, uint16(number+1))
	p = binary.BigEndian.AppendUint16(p, uint16(b.ruleOf[it.rule]+1))
	return appendUint56(p, min(it.cost, maxCost))
}

// mode returns the script's mode for what the batch holds.
func (b *batch) mode() byte {
	if slices.ContainsFunc(b.requests, func(r *request) bool { return r.verb == verbReset }) {
		return modeReset
	}
	return modeDecide
}

// spans says whether the batch has to do with more than one shard.
func (b *batch) spans() bool {
	shard := -1
	for _, r := range b.requests {
		for i := range r.items {
			if s := r.items[i].shard; shard >= 0 && s != shard {
				return true
			} else {
				shard = s
			}
		}
	}
	return false
}
