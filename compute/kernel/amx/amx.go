// Package amx multiplies matrices of bfloat16 with the tiles of Intel's AMX: registers of 16 rows
// of 64 bytes. A block of C is 32 x 32 floats, four tiles; a step adds to it the products of 32
// values of each of 32 rows of A, two tiles, and of 32 rows of B, two more.
//
// Tiles belong to a thread, so they live within one call of assembly, which configures and
// releases them: a goroutine may be moved to another thread before and after, and an interruption
// saves them.
//
// The package knows no edges: its callers pad matrices with zeros to whole blocks and steps.
package amx

import "unsafe"

//go:generate go run -tags avogen ../gen blocks
//go:generate go run -tags avogen ../gen transpose

const (
	// Side is the rows and columns of a block of C, and the values of a row of A in a step.
	Side = 32
	// StepWords is the words of B that a column of blocks reads in a step: for each pair of rows
	// one word for each of Side columns.
	StepWords = Side / 2 * Side
	// TileValues is the values of a tile: 16 rows of 32.
	TileValues = 16 * Side
)

// Blocks is a product C = A·B, or C += A·B, of whole blocks: Rows x Cols of them, each the sum of
// Steps steps.
type Blocks struct {
	Rows, Cols, Steps int

	// A has two tiles for each row of blocks and each step. ARow is how many values the rows of a
	// tile are apart, AStep the tiles of a step and the next, and ATile a tile and that of the 16
	// rows below. Values are bfloat16.
	A                  []uint16
	ARow, AStep, ATile int

	// B has StepWords for each column of blocks and step, steps first. A word is a pair of values
	// of a column, the upper row in its lower half.
	B []uint32

	// C has rows that are CRow values apart.
	C    []float32
	CRow int

	// Accumulate adds to C, which is overwritten else. Stream overwrites it past the caches: its
	// rows lie at multiples of 64 bytes.
	Accumulate, Stream bool

	// Next is memory that is read after this, of which each step asks for NextStep bytes, up to
	// 256; 0 for none.
	Next     uintptr
	NextStep int
}

// Ask has the steps ask memory for all of x.
func (b *Blocks) Ask(x []uint16) {
	const most = 256 // four lines
	if len(x) > 0 {
		b.Next = uintptr(unsafe.Pointer(&x[0]))
		b.NextStep = min(most, 2*len(x)/(b.Rows*b.Cols*b.Steps)+1)
	}
}

// The bits of the parameter mode of the assembly.
const (
	modeAccumulate = 1
	modeStream     = 2
)

func (b *Blocks) mode() (mode uint64) {
	if b.Accumulate {
		mode |= modeAccumulate
	}
	if b.Stream {
		mode |= modeStream
	}
	return mode
}

// check panics where assembly would leave the slices.
func (b *Blocks) check() {
	if b.Rows <= 0 || b.Cols <= 0 || b.Steps <= 0 {
		panic("BUG: a product of no blocks")
	}
	last := (b.Steps-1)*b.AStep + (2*b.Rows-1)*b.ATile + 15*b.ARow + Side
	_ = b.A[last-1]
	_ = b.B[b.Cols*b.Steps*StepWords-1]
	_ = b.C[(Side*b.Rows-1)*b.CRow+Side*b.Cols-1]
}
