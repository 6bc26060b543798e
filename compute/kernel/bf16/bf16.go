// Package bf16 holds the kernels of training in half precision: pure functions over row-major
// slices whose values are bfloat16, the upper half of a float32, and whose sums are float32.
//
// A matrix x of shape (R, C) is x[r*C+c], as in package kernel; slices may be longer than the shape
// needs, and inputs and outputs must not overlap. A product of two values is exact in float32, and
// sums are taken in one order, the order of the instruction VDPBF16PS: so a result has the same
// bits on every processor, whatever it computes them with, as long as there is no NaN, and whatever
// Pool.Workers. But where products are computed with tiles of AMX, their sums have the order of
// these: see package amx.
//
// Denormal numbers, those below 2^-126, are zeros of their sign: when a float32 is rounded, and in
// what products read and write.
package bf16

import "math"

//go:generate go run -tags avogen ../gen convert
//go:generate go run -tags avogen ../gen pairs
//go:generate go run -tags avogen ../gen gather
//go:generate go run -tags avogen ../gen entry
//go:generate go run -tags avogen ../gen weighted
//go:generate go run -tags avogen ../gen elements

// Number is a bfloat16: sign, 8 bits of exponent and 7 of the significand.
type Number uint16

const (
	exponentBits = 0x7f800000 // of a float32
	quietBit     = 0x400000
)

// Of returns the nearest Number, of two as near the even one. A NaN stays one, with the upper bits
// of its payload.
func Of(f float32) Number {
	u := math.Float32bits(f)
	switch {
	case u&^(1<<31) > exponentBits:
		return Number((u | quietBit) >> 16)
	case u&exponentBits == 0:
		return Number(u >> 16 & 0x8000)
	}
	return Number((u + 0x7fff + u>>16&1) >> 16)
}

// Float32 returns the value, which a float32 has exactly.
func (n Number) Float32() float32 { return math.Float32frombits(uint32(n) << 16) }
