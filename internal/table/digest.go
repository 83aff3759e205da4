package table

import (
	"hash/maphash"
	"math/bits"
	"math/rand/v2"

	"github.com/headgate/headgate/internal/algorithm"
)

// Limit is the identity of a limit. For one with a name the numbers are zero: the name identifies it. For one without, they do.
type Limit struct {
	Name   string
	Kind   algorithm.Kind
	Count  int64
	Period int64
	Burst  int64
}

// A Digest stands for a counter: for who pays and a limit. Two counters of one digest would be one. Among n counters that is so
// with a probability of about n*n/2^129: for 10,000,000 of them, 1.5e-25.
//
// Each half is the sum, bit by bit, of a hash of who pays, one of the limit's name, and one of its numbers, each with a secret of its own
// that is drawn for each table, so that nobody can aim at a collision: there is nothing to try keys on but the running table, which
// shows no digest. The hash of text is hash/maphash, which the runtime's own maps are kept from flooding with: two of them, for
// twice 64 bits, cost half of what SipHash-2-4 does, whose promise against an attacker is the stronger one. It is not needed: to
// profit, an attacker would have to find keys that agree in both halves, and could tell so only from two keys that share what they use.
type Digest struct{ Hi, Lo uint64 }

// segment is the part of d that chooses the segment.
func (d Digest) segment() uint64 { return d.Lo }

// hash is the secret of a table.
type hash struct {
	hi, lo half
}

// half is the secret of one half of the digests.
type half struct {
	owner, limit maphash.Seed
	numbers      [4]uint64
}

func newHash() hash { return hash{hi: newHalf(), lo: newHalf()} }

func newHalf() half {
	h := half{owner: maphash.MakeSeed(), limit: maphash.MakeSeed()}
	for i := range h.numbers {
		h.numbers[i] = rand.Uint64()
	}
	return h
}

// OfLimit returns the part of a digest that the limit makes.
func (t *Table) OfLimit(l *Limit) Digest {
	return Digest{Hi: t.hash.hi.limitSum(l), Lo: t.hash.lo.limitSum(l)}
}

// Digest returns the digest of the counter of owner under the limit that OfLimit made limit of.
func (t *Table) Digest(owner string, limit Digest) Digest {
	return Digest{Hi: limit.Hi ^ maphash.String(t.hash.hi.owner, owner), Lo: limit.Lo ^ maphash.String(t.hash.lo.owner, owner)}
}

// limitSum hashes a limit. A name goes with a Period of 0, so that no named limit is a nameless one.
func (h *half) limitSum(l *Limit) uint64 {
	return maphash.String(h.limit, l.Name) ^
		fold(uint64(l.Count)^h.numbers[0], uint64(l.Period)^h.numbers[1]) ^
		fold(uint64(l.Burst)^h.numbers[2], uint64(l.Kind)^h.numbers[3])
}

// fold multiplies to 128 bits and brings them back to 64.
func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}
