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

// hasDot tells whether the processor has VDPBF16PS.
func hasDot() bool { return cpu.X86.HasAVX512BF16 && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL }

// levels are those of this processor whose results have the same bits.
func levels() []*ops {
	all := []*ops{&plainOps}
	l, _ := kernel.Chosen()
	if l >= kernel.AVX2 {
		all = append(all, &avx2Ops)
	}
	if l >= kernel.AVX512 && cpu.X86.HasAVX512BW {
		all = append(all, &avx512Ops)
		if hasDot() {
			all = append(all, &dotOps)
		}
	}
	return all
}

var dotOps = ops{name: "avx512_bf16", narrow: narrowBy(narrowDot, 1),
	sums:  &avx512Sums,
	widen: widenBy(widenAVX512, 1), activateFloats: activateFloatsDot,
	activateHalf: activateHalfDot, activateGrad: activateGradDot,
	tiles: &tileSet{lanes: 16, rows: []int{12, 8, 4, 2, 1}, fn: [2][]tileFunc{
		{tileDot_12x1, tileDot_8x1, tileDot_4x1, tileDot_2x1, tileDot_1x1},
		{tileDot_12x2, tileDot_8x2, tileDot_4x2, tileDot_2x2, tileDot_1x2},
	}, packA: packAVX512_3, packB: packAVX512_2, packsRest: true}}

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
	tiles: &tileSet{lanes: 16, rows: []int{12, 8, 4, 2, 1}, fn: [2][]tileFunc{
		{tileAVX512_12x1, tileAVX512_8x1, tileAVX512_4x1, tileAVX512_2x1, tileAVX512_1x1},
		{tileAVX512_12x2, tileAVX512_8x2, tileAVX512_4x2, tileAVX512_2x2, tileAVX512_1x2},
	}, packA: packAVX512_3, packB: packWideAVX512_2, packsRest: true, widened: true}}

var avx2Ops = ops{name: "avx2", narrow: narrowBy(narrowAVX2, 8),
	sums: &avx2Sums, widen: widenBy(widenAVX2, 8),
	tiles: &tileSet{lanes: 8, rows: []int{6, 4, 2, 1}, fn: [2][]tileFunc{
		{tileAVX2_6x1, tileAVX2_4x1, tileAVX2_2x1, tileAVX2_1x1},
		{tileAVX2_6x2, tileAVX2_4x2, tileAVX2_2x2, tileAVX2_1x2},
	}, packA: packAVX2_3, packB: packWideAVX2_2, widened: true}}

var avx512Sums = sumSet{lanes: 16,
	sums: []sumFunc{
		gatherSumAVX512_1, gatherSumAVX512_2, gatherSumAVX512_3, gatherSumAVX512_4,
		gatherSumAVX512_5, gatherSumAVX512_6, gatherSumAVX512_7, gatherSumAVX512_8,
		gatherSumAVX512_9, gatherSumAVX512_10, gatherSumAVX512_11, gatherSumAVX512_12,
		gatherSumAVX512_13, gatherSumAVX512_14, gatherSumAVX512_15, gatherSumAVX512_16,
	},
	maxima: []maxFunc{
		gatherMaxAVX512_1, gatherMaxAVX512_2, gatherMaxAVX512_3, gatherMaxAVX512_4,
		gatherMaxAVX512_5, gatherMaxAVX512_6, gatherMaxAVX512_7, gatherMaxAVX512_8,
	},
	weight: weightedSet{rows: []weightedFunc{
		weightedAllAVX512_1, weightedAllAVX512_2, weightedAllAVX512_3, weightedAllAVX512_4,
		weightedAllAVX512_5, weightedAllAVX512_6, weightedAllAVX512_7, weightedAllAVX512_8,
		weightedAllAVX512_9, weightedAllAVX512_10, weightedAllAVX512_11, weightedAllAVX512_12,
		weightedAllAVX512_13, weightedAllAVX512_14, weightedAllAVX512_15, weightedAllAVX512_16,
	}, pairs: []weightedFunc{
		weightedPairAVX512_1, weightedPairAVX512_2, weightedPairAVX512_3, weightedPairAVX512_4,
		weightedPairAVX512_5, weightedPairAVX512_6, weightedPairAVX512_7, weightedPairAVX512_8,
	}, heads: []headsFunc{
		{16, 1, weightedHeadsAVX512_16x1},
		{8, 1, weightedHeadsAVX512_8x1},
		{8, 2, weightedHeadsAVX512_8x2},
		{4, 1, weightedHeadsAVX512_4x1},
		{4, 2, weightedHeadsAVX512_4x2},
		{4, 4, weightedHeadsAVX512_4x4},
		{2, 1, weightedHeadsAVX512_2x1},
		{2, 2, weightedHeadsAVX512_2x2},
		{2, 4, weightedHeadsAVX512_2x4},
		{2, 8, weightedHeadsAVX512_2x8},
	}},
	dots: entryDotAVX512,
}

var avx2Sums = sumSet{lanes: 8, whole: true,
	sums: []sumFunc{
		gatherSumAVX2_1, gatherSumAVX2_2, gatherSumAVX2_3, gatherSumAVX2_4, gatherSumAVX2_5,
		gatherSumAVX2_6, gatherSumAVX2_7, gatherSumAVX2_8,
	},
	maxima: []maxFunc{
		gatherMaxAVX2_1, gatherMaxAVX2_2, gatherMaxAVX2_3, gatherMaxAVX2_4,
	},
	weight: weightedSet{rows: []weightedFunc{
		weightedAllAVX2_1, weightedAllAVX2_2, weightedAllAVX2_3, weightedAllAVX2_4,
		weightedAllAVX2_5, weightedAllAVX2_6, weightedAllAVX2_7, weightedAllAVX2_8,
	}, pairs: []weightedFunc{
		weightedPairAVX2_1, weightedPairAVX2_2, weightedPairAVX2_3, weightedPairAVX2_4,
	}, heads: []headsFunc{
		{8, 1, weightedHeadsAVX2_8x1},
		{4, 1, weightedHeadsAVX2_4x1},
		{4, 2, weightedHeadsAVX2_4x2},
		{2, 1, weightedHeadsAVX2_2x1},
		{2, 2, weightedHeadsAVX2_2x2},
		{2, 4, weightedHeadsAVX2_2x4},
	}},
	dots: entryDotAVX2,
}

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
