package amx

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
)

// Available says why AMX is not used; nil means that it is. It asks the system for tiles once a
// process, and compares products with those of plain Go before it says so.
var Available = sync.OnceValue(func() error {
	if err := ask(); err != nil {
		return err
	}
	return Check(Multiply)
})

// Check compares what multiply makes of small products with Reference: to the bit where sums are
// exact, so that their order does not matter, and else up to rounding.
func Check(multiply func(*Blocks)) error {
	draw := rand.New(rand.NewPCG(1, 2))
	for _, exact := range []bool{true, false} {
		for _, accumulate := range []bool{false, true} {
			got := checked(draw, exact, accumulate)
			want := *got
			want.C = slices.Clone(got.C)
			multiply(got)
			Reference(&want)
			if !agree(got.C, want.C, exact) {
				return errors.New("AMX gives other products than plain Go does: it is not used. " +
					"Please report the processor's name")
			}
		}
	}
	return nil
}

// checked returns a product of 2 x 2 blocks and two steps, of small whole numbers if it is exact.
func checked(draw *rand.Rand, exact, accumulate bool) *Blocks {
	const blocks, steps = 2, 2
	number := func() float32 {
		if exact {
			return float32(draw.IntN(17) - 8)
		}
		return draw.Float32() - 0.5
	}
	half := func() uint16 { return uint16(math.Float32bits(number()) >> 16) }
	b := &Blocks{Rows: blocks, Cols: blocks, Steps: steps, ARow: steps * Side, AStep: Side,
		ATile: 16 * steps * Side, CRow: blocks * Side, Accumulate: accumulate,
		A: make([]uint16, blocks*Side*steps*Side), B: make([]uint32, blocks*steps*StepWords),
		C: make([]float32, blocks*Side*blocks*Side)}
	for i := range b.A {
		b.A[i] = half()
	}
	for i := range b.B {
		b.B[i] = uint32(half()) | uint32(half())<<16
	}
	for i := range b.C {
		b.C[i] = number()
	}
	return b
}

// agree says that two results are the same, or differ by no more than sums in another order do: a
// few roundings of sums of steps·Side products below 1/4.
func agree(got, want []float32, exact bool) bool {
	const bound = 64.0 / 4 * 8 / (1 << 24)
	for i, g := range got {
		if d := math.Abs(float64(g - want[i])); exact && d != 0 || !(d <= bound) {
			return false
		}
	}
	return true
}
