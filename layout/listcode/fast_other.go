//go:build !amd64

package listcode

func prefetch([]byte, []uint64, int) {}

func packedFields(b []byte, places []uint64, width int, out []uint32) {
	packedFieldsPlain(b, places, width, out)
}

func ask(*Gatherer, *Ref, []uint32) {}

func take(b []byte, r *Ref, pos, out []uint32) { takePlain(b, r, pos, out) }

func selectBit(word, rank uint64) uint64 { return selectPlain(word, rank) }
