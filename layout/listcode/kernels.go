package listcode

import "math/bits"

// ahead is how many places kernels read ahead: arrays of places have this many more.
const ahead = 16

// PlacesMost is the number of places in Places: they fit in the first-level cache of a core, and
// are enough that reads of memory overlap.
const PlacesMost = 256

// Places are places of entries to read, in bits.
type Places struct {
	at [PlacesMost + ahead]uint64
}

// At returns the first n places, for the caller to fill.
func (p *Places) At(n int) []uint64 { return p.at[:n] }

// Fields writes the fields at the first n places, of equal width up to 32, to out.
func (p *Places) Fields(b []byte, n, width int, out []uint32) {
	packedFields(b, p.at[:n], width, out[:n])
}

// Prefetch prefetches the memory at places in b, in bits, and this number of bytes after them.
func Prefetch(b []byte, places []uint64, bytes int) { prefetch(b, places, bytes) }

func packedFieldsPlain(b []byte, places []uint64, width int, out []uint32) {
	for i, at := range places {
		out[i] = uint32(Field(b, at, width))
	}
}

// cell returns where the cell of entry i begins, counted after the first entry, and the entry's
// index in it.
func (r *Ref) cell(i uint64) (at, rank uint64) {
	cell := i * uint64(r.recip) >> 32
	return r.low + cell*uint64(r.stride), i - cell*uint64(r.per)
}

// findPlacesPlain writes the places of the entries of a list at positions to out. The list must be
// packed or in cells.
func findPlacesPlain(r *Ref, pos []uint32, out []place) {
	for k, p := range pos {
		at, rank := r.cell(uint64(max(p-r.From, 1)) - 1)
		out[k] = place{at: at, low: at + uint64(r.ahead) + rank*uint64(r.width), first: r.first}
		if p != r.From {
			out[k].width, out[k].base = r.width, r.base
			out[k].rank, out[k].kind = uint8(rank), r.kind
		}
	}
}

// findPlacesOfPlain does what findPlacesPlain does, with a list of its own for each position.
func findPlacesOfPlain(refs []*Ref, pos []uint32, out []place) {
	for k := range pos {
		findPlacesPlain(refs[k], pos[k:k+1], out[k:k+1])
	}
}

// takePlain writes the entries at places to out.
func takePlain(b []byte, places []place, out []uint32) {
	for k := range out {
		p := &places[k]
		v := Field(b, p.low, int(p.width))
		if p.kind == kindCells {
			rank := uint64(p.rank)
			high := Field(b, p.at, int(p.base)) - rank
			high += selectPlain(load(b, p.at+uint64(p.base)), rank)
			v += high << p.width
		}
		out[k] = p.first + uint32(v)
	}
}

// selectPlain returns the place of one number rank of a word, counted from 0, or 64 if it has
// fewer.
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
