//go:build !amd64

package amx

// Multiply computes b.
func Multiply(b *Blocks) { Reference(b) }

// Transpose cuts Side rows, whose columns values begin fromRow values apart, into tiles of 16
// columns: tile t is at to[t·toTile], and its rows are columns 16t and on. Columns that are not
// there become zeros.
func Transpose(to, from []uint16, columns, fromRow, toTile int) {
	refTranspose(to, from, columns, fromRow, toTile)
}
