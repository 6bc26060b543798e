package kernel

import (
	"math"
	"math/bits"
)

// dropoutBlock is how many positions share the two words of a key. Blocks keep the counter of a
// draw in 32 bits, which vectors multiply fast.
const dropoutBlock = 1 << 20

// dropoutPlan is what the draws of one block need. The fields are read by assembly at the offsets
// written beside them.
type dropoutPlan struct {
	add       uint32  // 0: added to the position
	xor       uint32  // 4: mixed in half way
	threshold uint32  // 8: a draw below it, of 24 bits, drops the value
	scale     float32 // 12: for the values that are kept
}

// The multipliers of draw: the first is 2^32 divided by the golden ratio, the others are those of
// the 32-bit mixer that Chris Wellons found by search (lowbias32).
const (
	drawStep = 0x9e3779b9
	drawMul1 = 0x7feb352d
	drawMul2 = 0x846ca68b
)

// draw returns 24 random bits for a position.
func (d *dropoutPlan) draw(position uint32) uint32 {
	x := position*drawStep + d.add
	x = (x ^ x>>16) * drawMul1
	x = (x ^ x>>15 ^ d.xor) * drawMul2
	return (x ^ x>>16) >> 8
}

// Dropout zeroes each value of y with probability rate and scales the others by 1/(1-rate), in
// place (inverted dropout). Whether value i is dropped is a function of key and i. The rate is
// rounded to a multiple of 2^-24; it must be at least 0 and below 1.
func Dropout(p *Pool, y []float32, rate float32, key uint64) {
	if !(rate >= 0 && rate < 1) {
		panic("BUG: a dropout rate must be at least 0 and below 1")
	}
	if rate == 0 {
		return
	}
	threshold := uint32(math.Round(float64(rate) * (1 << 24)))
	dropout := level().dropout
	p.span(len(y), flatPart, func(lo, hi int) {
		a, b := bits.Mul64(key^uint64(lo/dropoutBlock)*0xa0761d6478bd642f^0xe7037ed1a0b428db,
			0x8ebc6af09c88c6e3)
		d := dropoutPlan{add: uint32(a ^ b), xor: uint32((a ^ b) >> 32), threshold: threshold,
			scale: 1 / (1 - rate)}
		dropout(y[lo:hi], &d, uint32(lo%dropoutBlock))
	})
}

// DropoutGrad is the gradient of Dropout in its input, in place: the same values are dropped.
func DropoutGrad(p *Pool, dy []float32, rate float32, key uint64) { Dropout(p, dy, rate, key) }

// A part lies in one block.
const _ uint = -(dropoutBlock % flatPart)
