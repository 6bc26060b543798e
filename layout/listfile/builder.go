package listfile

import (
	"encoding/binary"
	"fmt"
	"math"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/listcode"
)

// blockBuilder collects the lists of one block. It knows what they will take without coding them.
type blockBuilder struct {
	shape *Shape
	block []byte

	first   layout.NodeID
	start   uint32 // position of the first entry
	slots   int    // lists so far, empty ones between others too
	ids     []uint32
	values  [3][]uint64 // columns
	spans   [3]listcode.Span
	ends    []uint32 // of each list, in entries
	lists   int      // that are not empty
	sizes   listSizes
	firsts  listcode.Span
	scratch []uint32
	coded   listcode.Writer
}

// entries are those of one list that are to be added.
type entries struct {
	ids    []uint32
	values [3][]uint64
}

// head is the first n of them, tail the others.
func (e *entries) head(n int) (h entries) {
	h.ids = e.ids[:n]
	for i, v := range e.values {
		h.values[i] = v[:min(n, len(v))]
	}
	return h
}

// drop forgets the first n.
func (e *entries) drop(n int) {
	e.ids = e.ids[:copy(e.ids, e.ids[n:])]
	for i, v := range e.values {
		if len(v) > 0 {
			e.values[i] = v[:copy(v, v[n:])]
		}
	}
}

func newBlockBuilder(s *Shape) *blockBuilder {
	return &blockBuilder{shape: s, block: make([]byte, s.BlockBytes)}
}

// reset empties the block.
func (b *blockBuilder) reset() {
	b.slots, b.lists, b.sizes = 0, 0, listSizes{}
	b.ids, b.ends = b.ids[:0], b.ends[:0]
	b.firsts = listcode.Span{}
	for i := range b.values {
		b.values[i], b.spans[i] = b.values[i][:0], listcode.Span{}
	}
}

// empty says that there are no lists.
func (b *blockBuilder) empty() bool { return b.slots == 0 }

// size is what the block takes with a list of node beside those it has, in bits; of an empty block
// with this list alone.
func (b *blockBuilder) size(node layout.NodeID, e entries) int {
	s, count := b.shape, len(e.ids)
	slots := uint64(1)
	if !b.empty() {
		slots = uint64(node-b.first) + 1
	}
	most := s.entriesMost()
	if slots > uint64(most) || len(b.ids)+count > most {
		return math.MaxInt
	}
	firsts := b.firsts
	firsts.Add(uint64(e.ids[0]))
	_, width := firsts.Range()
	sizes := b.sizes
	sizes.add(s.listBits(e.ids))
	units := sizes.units(width)
	opening := b.ids
	if b.empty() {
		opening = e.ids
	} else {
		opening = opening[:b.ends[0]]
	}
	head := BlockHeaderBytes*8 + s.directoryBits(endsDirectory, int(slots),
		s.listUnits(opening, width), units)
	if s.HasAttributes() {
		head += s.directoryBits(countsDirectory, int(slots), len(opening), len(b.ids)+count)
	}
	size := head + roundUp(unitBits*units)
	for i, c := range s.columns() {
		if c.has {
			span := b.spans[i]
			for _, v := range e.values[i] {
				span.Add(v)
			}
			size += roundUp(span.Bits(len(b.ids)+count, c.bits))
		}
	}
	return size + 8*listcode.Slack
}

// roundUp is the size of a part that ends with a whole byte.
func roundUp(bits int) int { return (bits + 7) &^ 7 }

// listSizes is what lists take, whatever the width of their first ids will be: the sum of their
// bits without these, and how many lists have each rest of a unit.
type listSizes struct {
	bits  int
	rests [unitBits]int
}

func (l *listSizes) add(bits int) {
	l.bits += bits
	l.rests[bits%unitBits]++
}

// units is the sum with first ids of so many bits.
func (l *listSizes) units(width int) int {
	sum := l.bits
	for rest, lists := range l.rests {
		sum += lists * (width + (unitBits-(rest+width)%unitBits)%unitBits)
	}
	return sum / unitBits
}

// listBits is what a list takes, without its first id.
func (s *Shape) listBits(ids []uint32) int {
	return listcode.Coding{PosBits: s.posBits, Cells: true}.ListBits(ids)
}

// listUnits is what a list takes whose first id takes so many bits.
func (s *Shape) listUnits(ids []uint32, width int) int {
	return (s.listBits(ids) + width + unitBits - 1) / unitBits
}

// The directories of a block.
const (
	endsDirectory = iota
	countsDirectory
)

// directoryCoding is that of a directory.
func (s *Shape) directoryCoding(which int) listcode.Coding {
	if which == countsDirectory {
		return listcode.Coding{FirstBits: s.posBits, PosBits: s.posBits}
	}
	return listcode.Coding{FirstBits: s.endBits, PosBits: s.posBits}
}

// directoryBits is what a directory of so many ends from first to last takes.
func (s *Shape) directoryBits(which, slots, first, last int) int {
	return roundUp(s.directoryCoding(which).Bits(slots, uint32(first), uint32(last)))
}

// fits says whether a list fits in the block.
func (b *blockBuilder) fits(node layout.NodeID, e entries) bool {
	return b.size(node, e) <= 8*b.shape.BlockBytes
}

// room is how many of the first entries of a list fit, and what is left without it, in bits.
func (b *blockBuilder) room(node layout.NodeID, e entries) int {
	low, high := 0, len(e.ids) // low fit
	for low < high {
		mid := (low + high + 1) / 2
		if b.fits(node, e.head(mid)) {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low
}

// add appends the list of a node, from a position on; it fits.
func (b *blockBuilder) add(node layout.NodeID, start uint32, e entries) {
	if b.empty() {
		b.first, b.start = node, start
	}
	for b.slots < int(node-b.first) {
		b.ends = append(b.ends, uint32(len(b.ids)))
		b.slots++
	}
	b.sizes.add(b.shape.listBits(e.ids))
	b.firsts.Add(uint64(e.ids[0]))
	b.ids = append(b.ids, e.ids...)
	for i, v := range e.values {
		b.values[i] = append(b.values[i], v...)
		for _, x := range v {
			b.spans[i].Add(x)
		}
	}
	b.ends = append(b.ends, uint32(len(b.ids)))
	b.slots++
	b.lists++
}

// finish codes the block as number n, without its checksum; it is valid until the next call.
func (b *blockBuilder) finish(n uint64) []byte {
	out, le := b.block, binary.LittleEndian
	base, width := b.firsts.Range()
	clear(out)
	copy(out[4:], blockMagic)
	le.PutUint64(out[8:], n)
	out[16] = codecCompact
	out[18] = byte(width)
	le.PutUint32(out[20:], uint32(b.first))
	le.PutUint32(out[24:], uint32(b.slots))
	le.PutUint32(out[28:], uint32(len(b.ids)))
	le.PutUint32(out[32:], b.start)
	le.PutUint32(out[36:], uint32(base))
	at := BlockHeaderBytes
	at += b.directory(out, at, endsDirectory, b.listEnds(width))
	if b.shape.HasAttributes() {
		at += b.directory(out, at, countsDirectory, b.ends)
	}
	coding := listcode.Coding{Base: uint32(base), FirstBits: width, PosBits: b.shape.posBits,
		Cells: true}
	at += b.write(out[at:], func(w *listcode.Writer) {
		from := uint32(0)
		for _, end := range b.ends {
			if end > from {
				coding.Append(w, b.ids[from:end])
				w.Add(0, -w.Bits()&(unitBits-1))
			}
			from = end
		}
	})
	for i, c := range b.shape.columns() {
		if c.has {
			at += b.write(out[at:], func(w *listcode.Writer) {
				listcode.AppendColumn(w, b.values[i], b.spans[i], c.bits)
			})
		}
	}
	return out
}

// listEnds are where the lists end, in units, with first ids of so many bits.
func (b *blockBuilder) listEnds(width int) []uint32 {
	b.scratch = mem.Resize(b.scratch, b.slots)
	from, at := uint32(0), 0
	for i, end := range b.ends {
		if end > from {
			at += b.shape.listUnits(b.ids[from:end], width)
		}
		b.scratch[i], from = uint32(at), end
	}
	return b.scratch
}

// directory writes ends, and their size in bits to the header, and returns in how many bytes.
func (b *blockBuilder) directory(out []byte, at, which int, ends []uint32) int {
	return b.write(out[at:], func(w *listcode.Writer) {
		b.shape.directoryCoding(which).Append(w, ends)
		binary.LittleEndian.PutUint32(out[40+4*which:], uint32(w.Bits()))
	})
}

// write writes a part of the block, and returns in how many bytes.
func (b *blockBuilder) write(out []byte, part func(w *listcode.Writer)) int {
	b.coded.Reset()
	part(&b.coded)
	if b.coded.Bits() > 8*(len(out)-listcode.Slack) {
		panic(fmt.Sprintf("BUG: %d bits in %d bytes of a block", b.coded.Bits(), len(out)))
	}
	return b.coded.CopyTo(out)
}
