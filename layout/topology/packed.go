package topology

import (
	"encoding/binary"
	"math/bits"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/listcode"
)

// packedIDs are ids of equal width, one after the other. Eight more bytes follow the last, so that
// each id can be read with one load.
type packedIDs struct {
	b     []byte
	width uint64 // bits of an id
}

// packedBytes returns the memory of this number of entries, in bytes.
func packedBytes(edges, nodes uint64) int64 { return int64((edges*idBits(nodes)+7)/8) + 8 }

// idBits returns the number of bits of an id, for this number of nodes.
func idBits(nodes uint64) uint64 { return uint64(bits.Len64(max(nodes, 2) - 1)) }

// at returns entry i.
func (p *packedIDs) at(i uint64) layout.NodeID {
	place := i * p.width
	word := binary.LittleEndian.Uint64(p.b[place>>3:]) >> (place & 7)
	return layout.NodeID(word & (1<<p.width - 1))
}

// packer writes consecutive entries to memory that is zero. Several may write at the same time: the
// bytes that a packer shares with its neighbors are written by finish, which one goroutine must
// call for all.
type packer struct {
	ids    *packedIDs
	at     uint64 // byte where word goes
	word   uint64 // bits of entries, and before the first those of its neighbor
	bits   uint64 // number of bits in word
	headAt uint64 // byte where the first entry begins, and (head) its bits
	head   byte
	begun  bool // whether a word was written
}

// packer returns a packer that begins with entry i.
func (p *packedIDs) packer(i uint64) packer {
	place := i * p.width
	return packer{ids: p, at: place >> 3, headAt: place >> 3, bits: place & 7}
}

// put writes the next entries, as far as they fill whole words.
func (p *packer) put(ids []layout.NodeID) {
	b, width := p.ids.b, p.ids.width
	at, word, n := p.at, p.word, p.bits
	for _, v := range ids {
		word |= uint64(v) << n
		if n += width; n < 64 {
			continue
		}
		if p.begun {
			binary.LittleEndian.PutUint64(b[at:], word)
		} else {
			p.putHead(word)
		}
		at, n = at+8, n-64
		word = uint64(v) >> (width - n)
	}
	p.at, p.word, p.bits = at, word, n
}

// putHead writes the first word without its first byte, which it keeps for finish.
func (p *packer) putHead(word uint64) {
	p.head, p.begun = byte(word), true
	for i := 1; i < 8; i++ {
		p.ids.b[p.at+uint64(i)] = byte(word >> (8 * i))
	}
}

// finish writes the remaining bits and the first byte.
func (p *packer) finish() {
	b := p.ids.b
	whole := p.bits >> 3
	for i := range whole {
		b[p.at+i] |= byte(p.word >> (8 * i))
	}
	if p.bits&7 > 0 {
		b[p.at+whole] |= byte(p.word >> (8 * whole))
	}
	b[p.headAt] |= p.head
}

// packedGatherer reads single entries, many at a time. One goroutine may use it.
type packedGatherer struct {
	ids    *packedIDs
	places listcode.Places // places of the entries to read
	used   int
}

// add adds entries at positions after from, as many as there is room for, and returns how many.
func (g *packedGatherer) add(from uint64, pos []uint32) int {
	n := min(len(pos), listcode.PlacesMost-g.used)
	width, places := g.ids.width, g.places.At(g.used + n)[g.used:]
	for j, x := range pos[:n] {
		places[j] = (from + uint64(x)) * width
	}
	g.used += n
	return n
}

// finish writes the entries that were added to out.
func (g *packedGatherer) finish(out []layout.NodeID) {
	ids := mem.View[uint32](mem.BytesOf(out))
	g.places.Fields(g.ids.b, g.used, int(g.ids.width), ids)
	g.used = 0
}

// gatherPacked writes the entries at positions pos[off[i]:off[i+1]] of list i, which begins at
// start[i], to the same places of out.
func gatherPacked[P offset](g *packedGatherer, start []P, off, pos []uint32, out []layout.NodeID) {
	from := off[0]
	for i, first := range start {
		for at := off[i]; at < off[i+1]; {
			at += uint32(g.add(uint64(first), pos[at:off[i+1]]))
			if g.used == listcode.PlacesMost {
				g.finish(out[from:at])
				from = at
			}
		}
	}
	g.finish(out[from:off[len(start)]])
}
