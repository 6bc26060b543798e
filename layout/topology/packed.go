package topology

import (
	"encoding/binary"
	"math/bits"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/listcode"
)

// packedIDs are ids of one width, one after the other. Eight bytes more follow the last, so that
// each is one load.
type packedIDs struct {
	b     []byte
	width uint64 // in bits
}

// packedBytes is what they take for so many entries.
func packedBytes(edges, nodes uint64) int64 { return int64((edges*idBits(nodes)+7)/8) + 8 }

// idBits is the width of an id of so many nodes.
func idBits(nodes uint64) uint64 { return uint64(bits.Len64(max(nodes, 2) - 1)) }

// at is entry i.
func (p *packedIDs) at(i uint64) layout.NodeID {
	place := i * p.width
	word := binary.LittleEndian.Uint64(p.b[place>>3:]) >> (place & 7)
	return layout.NodeID(word & (1<<p.width - 1))
}

// put writes entries from i on, which are zero before.
func (p *packedIDs) put(i uint64, ids []layout.NodeID) {
	place := i * p.width
	for _, v := range ids {
		b := p.b[place>>3:]
		word := binary.LittleEndian.Uint64(b) | uint64(v)<<(place&7)
		binary.LittleEndian.PutUint64(b, word)
		place += p.width
	}
}

// packedGatherer reads single entries. It is for one goroutine.
type packedGatherer struct {
	ids    *packedIDs
	places listcode.Places // of entries under way
	used   int
}

// add takes entries at positions after from, and returns how many.
func (g *packedGatherer) add(from uint64, pos []uint32) int {
	n := min(len(pos), listcode.PlacesMost-g.used)
	width, places := g.ids.width, g.places.At(g.used + n)[g.used:]
	for j, x := range pos[:n] {
		places[j] = (from + uint64(x)) * width
	}
	g.used += n
	return n
}

// finish writes the entries under way to out.
func (g *packedGatherer) finish(out []layout.NodeID) {
	ids := mem.View[uint32](mem.BytesOf(out))
	g.places.Fields(g.ids.b, g.used, int(g.ids.width), ids)
	g.used = 0
}

// gatherPacked writes the entries of lists that begin at start, at positions pos[off[i]:off[i+1]]
// of list i, to the same places of out.
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
