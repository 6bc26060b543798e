package bf16

import (
	"errors"

	"golang.org/x/sys/cpu"

	"gdb/compute/kernel"
	"gdb/compute/kernel/amx"
)

// candidates returns the levels that come into question on this processor, none higher than that of
// package kernel, and why AMX is not one of them. Which is the fastest is not known: VDPBF16PS does
// twice the products of float32 arithmetic on some processors, and two thirds of them on others.
func candidates() (all []*ops, noAMX error) {
	l, _ := kernel.Chosen()
	switch {
	case l == kernel.Plain:
		return []*ops{&plainOps}, errBounded
	case l == kernel.AVX2 || !cpu.X86.HasAVX512BW: // of words
		return []*ops{&avx2Ops}, errBounded
	case !hasDot():
		return []*ops{&avx512Ops}, errBounded
	}
	all = []*ops{&dotOps, &avx512Ops}
	if noAMX = amx.Available(); noAMX == nil {
		all = append(all, &amxOps)
	}
	return all, noAMX
}

// errBounded is why there is no AMX at a lower level.
var errBounded = errors.New("AMX is used where there are AVX-512 and VDPBF16PS, " +
	"and GDB_KERNEL does not say otherwise")

// hasDot reports whether the processor has VDPBF16PS.
func hasDot() bool { return cpu.X86.HasAVX512BF16 && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL }

var dotOps = ops{name: "avx512_bf16", narrow: narrowBy(narrowDot, 1),
	sums:  &avx512Sums,
	widen: widenBy(widenAVX512, 1), activateFloats: activateFloatsDot,
	activateHalf: activateHalfDot, activateGrad: activateGradDot,
	tiles: &tileSet{lanes: 16, rows: []int{12, 8, 4, 2, 1}, fn: tileDot,
		packA: packAVX512_3, packB: packAVX512_2, packsRest: true}}

// amxOps differs from dotOps in products.
var amxOps = withBlocks(AMX, amx.Multiply)

func withBlocks(name string, multiply func(*amx.Blocks)) ops {
	o := dotOps
	o.name, o.blocks = name, multiply
	o.tiles = &tileSet{lanes: 16, packB: packAVX512_2, packsRest: true, steps: true}
	return o
}

var avx512Ops = ops{name: "avx512", narrow: narrowBy(narrowAVX512, 1),
	sums:  &avx512Sums,
	widen: widenBy(widenAVX512, 1), activateFloats: activateFloatsAVX512,
	activateHalf: activateHalfAVX512, activateGrad: activateGradAVX512,
	tiles: &tileSet{lanes: 16, rows: []int{12, 8, 4, 2, 1}, fn: tileAVX512,
		packA: packAVX512_3, packB: packWideAVX512_2, packsRest: true, widened: true}}

var avx2Ops = ops{name: "avx2", narrow: narrowBy(narrowAVX2, 8),
	sums: &avx2Sums, widen: widenBy(widenAVX2, 8),
	tiles: &tileSet{lanes: 8, rows: []int{6, 4, 2, 1}, fn: tileAVX2,
		packA: packAVX2_3, packB: packWideAVX2_2, widened: true}}

var avx512Sums = sumSet{lanes: 16,
	sums: gatherSumAVX512, maxima: gatherMaxAVX512, dots: entryDotAVX512,
	weight: weightedSet{rows: weightedAllAVX512, pairs: weightedPairAVX512,
		heads: weightedHeadsAVX512}}

var avx2Sums = sumSet{lanes: 8, whole: true,
	sums: gatherSumAVX2, maxima: gatherMaxAVX2, dots: entryDotAVX2,
	weight: weightedSet{rows: weightedAllAVX2, pairs: weightedPairAVX2,
		heads: weightedHeadsAVX2}}

// narrowBy is a conversion by assembly, which takes whole multiples of some values; the rest is
// left to the specification.
func narrowBy(fn func(out *uint16, x *float32, n int), multiple int) func([]Number, []float32) {
	return func(out []Number, x []float32) {
		n := len(x) / multiple * multiple
		if n > 0 {
			fn((*uint16)(&out[0]), &x[0], n)
		}
		refNarrow(out[n:], x[n:])
	}
}

func widenBy(fn func(out *float32, x *uint16, n int), multiple int) func([]float32, []Number) {
	return func(out []float32, x []Number) {
		n := len(x) / multiple * multiple
		if n > 0 {
			fn(&out[0], (*uint16)(&x[0]), n)
		}
		refWiden(out[n:], x[n:])
	}
}
