package table

import "github.com/headgate/headgate/internal/algorithm"

// packed is a State in 24 bytes: At in 52 bits, which last until the year 2112, Life in 48, A and B in 46 each. That is every state of a
// limit of up to 70 trillion tokens. One that does not fit, and every log, lies on the shelf of its segment: then Life says
// so, A is the place there, B what it is, and At the weight of a log.
type packed [3]uint64

const (
	bitsAt   = 52
	bitsLife = 48 // more than 8 years of microseconds, and so more than any Life
	bitsUsed = 46 // of A and of B

	onShelf = 1<<bitsLife - 1
	isWide  = 0
	isLog   = 1
)

// pack returns s in 24 bytes; false if it does not fit.
func pack(s algorithm.State) (packed, bool) {
	at, life, a, b := uint64(s.At), uint64(s.Life), uint64(s.A), uint64(s.B)
	fits := at>>bitsAt == 0 && life < onShelf && (a|b)>>bitsUsed == 0
	return packing(at, life, a, b), fits
}

func packing(at, life, a, b uint64) packed {
	return packed{at<<12 | life>>36, life<<28 | a>>18, a<<46 | b}
}

func (p *packed) unpack() algorithm.State {
	return algorithm.State{
		At:   int64(p[0] >> 12),
		Life: int64(p[0]<<36&onShelf | p[1]>>28),
		A:    int64(p[1]<<18&(1<<bitsUsed-1) | p[2]>>46),
		B:    int64(p[2] & (1<<bitsUsed - 1)),
	}
}

// load returns the state of a slot that another may be writing to.
func (slot *Slot) load() packed {
	return packed{load(&slot.state[0]), load(&slot.state[1]), load(&slot.state[2])}
}

// set writes the words that differ: a store that others may see at any time takes longer than to look.
func (slot *Slot) set(p packed) {
	for i := range p {
		if slot.state[i] != p[i] {
			store(&slot.state[i], p[i])
		}
	}
}
