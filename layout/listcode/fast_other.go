//go:build !amd64

package listcode

func prefetch([]byte, []uint64) {}

func packedFields(b []byte, places []uint64, width int, out []uint32) {
	packedFieldsPlain(b, places, width, out)
}

func addFields(b []byte, places []uint64, widths []uint8, firsts, out []uint32) {
	addFieldsPlain(b, places, widths, firsts, out)
}

func selectOnes(b []byte, at, rank []uint64, reach int) { selectOnesPlain(b, at, rank, reach) }
