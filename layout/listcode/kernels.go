package listcode

import "math/bits"

// ahead is how many places kernels look ahead: arrays of places have so many more.
const ahead = 16

// PlacesMost is how many places there are in Places: they fit in the first cache of a core, and are
// enough that reads of memory overlap.
const PlacesMost = 256

// Places are some places in bytes, in bits, of entries that are under way.
type Places struct {
	at [PlacesMost + ahead]uint64
}

// At are the first n.
func (p *Places) At(n int) []uint64 { return p.at[:n] }

// Fields writes the first n fields of one width, at most 32, to out.
func (p *Places) Fields(b []byte, n, width int, out []uint32) {
	packedFields(b, p.at[:n], width, out[:n])
}

// Prefetch asks for the memory at places in b, in bits, and for that of so many bytes after them.
func Prefetch(b []byte, places []uint64, bytes int) { prefetch(b, places, bytes) }

func packedFieldsPlain(b []byte, places []uint64, width int, out []uint32) {
	for i, at := range places {
		out[i] = uint32(Field(b, at, width))
	}
}

// cell is where the cell of entry i, after the first, begins, and the entry's number in it.
func (r *Ref) cell(i uint64) (at, rank uint64) {
	cell := i * uint64(r.recip) >> 32
	return r.low + cell*uint64(r.stride), i - cell*uint64(r.per)
}

// takePlain writes the entries of a list at positions to out. The list is packed or in cells.
func takePlain(b []byte, r *Ref, pos, out []uint32) {
	for k, p := range pos {
		if out[k] = r.first; p == 0 {
			continue
		}
		at, rank := r.cell(uint64(p) - 1)
		v := Field(b, at+uint64(r.ahead)+rank*uint64(r.width), int(r.width))
		if r.kind == kindCells {
			high := Field(b, at, int(r.base))
			high += selectPlain(load(b, at+uint64(r.base)), rank) - rank
			v += high << r.width
		}
		out[k] += uint32(v)
	}
}

// selectPlain is the place of one number rank of a word, 64 if it has none.
func selectPlain(word, rank uint64) (at uint64) {
	if rank >= uint64(bits.OnesCount64(word)) {
		return 64
	}
	for _, half := range [...]uint64{32, 16, 8} {
		n := uint64(bits.OnesCount64(word & (1<<half - 1)))
		if rank >= n {
			rank -= n
			word >>= half
			at += half
		}
	}
	for ; rank > 0; rank-- {
		word &= word - 1
	}
	return at + uint64(bits.TrailingZeros64(word))
}
