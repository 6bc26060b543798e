package amx

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// configuration has eight tiles of 16 rows of 64 bytes: palette 1, and from byte 16 on the bytes of
// rows, from byte 48 on the rows.
var configuration = [64]byte{0: 1, 16: 64, 18: 64, 20: 64, 22: 64, 24: 64, 26: 64, 28: 64, 30: 64,
	48: 16, 49: 16, 50: 16, 51: 16, 52: 16, 53: 16, 54: 16, 55: 16}

// multiplyBlocks computes blocks: see Blocks.
//
//lint:parameters a register for each that the loops step by
//go:noescape
func multiplyBlocks(rows, cols, steps int, a *uint16, aRow, aStep, aTile uintptr, b *uint32,
	c *float32, cRow uintptr, mode uint64, buffer *float32, next, nextStep uintptr,
	config *[64]byte)

//go:noescape
func transposeTiles(to, from *uint16, tiles int, fromRow, toTile uintptr, lastMask uint64)

// Multiply computes b. The processor has AMX, and Available was asked.
func Multiply(b *Blocks) {
	b.check()
	if !b.Stream {
		b.multiply(nil)
		return
	}
	const lanes = 16 // of a line
	var buffer [Side*Side + lanes]float32
	b.multiply(&buffer[-uintptr(unsafe.Pointer(&buffer))/4%lanes])
}

// multiply has a buffer for a block that is written past the caches.
func (b *Blocks) multiply(buffer *float32) {
	next, nextStep := b.Next, b.NextStep
	if next == 0 { // which costs a search for the page
		next, nextStep = uintptr(unsafe.Pointer(&b.B[0])), 0
	}
	multiplyBlocks(b.Rows, b.Cols, b.Steps, &b.A[0], uintptr(2*b.ARow), uintptr(2*b.AStep),
		uintptr(2*b.ATile), &b.B[0], &b.C[0], uintptr(4*b.CRow), b.mode(), buffer, next,
		uintptr(nextStep), &configuration)
}

// Transpose cuts Side rows, whose columns values begin fromRow values apart, into tiles of 16
// columns: tile t is at to[t·toTile], and its rows are columns 16t and on. Columns that are not
// there become zeros.
func Transpose(to, from []uint16, columns, fromRow, toTile int) {
	if columns == 0 {
		return
	}
	if !cpu.X86.HasAVX512BW {
		refTranspose(to, from, columns, fromRow, toTile)
		return
	}
	tiles := (columns + 15) / 16
	_, _ = from[(Side-1)*fromRow+columns-1], to[(tiles-1)*toTile+TileValues-1]
	transposeTiles(&to[0], &from[0], tiles, uintptr(2*fromRow), uintptr(2*toTile),
		1<<(columns-(tiles-1)*16)-1)
}
