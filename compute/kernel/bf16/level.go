package bf16

import (
	"sync/atomic"

	"gdb/compute/kernel/amx"
)

// ops are the parts of the kernels that differ between levels.
type ops struct {
	name   string
	tiles  *tileSet
	sums   *sumSet
	narrow func(out []Number, x []float32)
	widen  func(out []float32, x []Number)

	// blocks multiplies by blocks of tiles, with sums in an order of its own; nil: by tiles.
	blocks func(*amx.Blocks)

	// Nil: by widen, kernels of package kernel, and narrow.
	activateFloats activateFunc[float32]
	activateHalf   activateFunc[uint16]
	activateGrad   gradientFunc
}

var plainOps = ops{name: "plain", tiles: &plainTiles, sums: &sumSet{},
	narrow: refNarrow, widen: refWiden}

// active is the level in use once it is chosen; tests change it.
var active atomic.Pointer[ops]

// level returns the level in use.
func level() *ops {
	if o := active.Load(); o != nil {
		return o
	}
	active.CompareAndSwap(nil, chosen().ops)
	return active.Load()
}

// AMX is the level whose sums have an order of their own: that of all others is one.
const AMX = "amx"

// Level names what products are computed with: tiles of AMX (AMX), the instruction VDPBF16PS
// ("avx512_bf16"), or float32 arithmetic at a level of package kernel.
func Level() string { return level().name }
