package listfile

import (
	"encoding/binary"
	"fmt"
	"math"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/listcode"
)

// blockBuilder collects the lists of one block. It computes their coded size without coding them.
type blockBuilder struct {
	shape *Shape
	block []byte

	first   layout.NodeID
	start   uint32 // position of the first entry
	slots   int    // number of lists so far, with empty ones in between
	ids     []uint32
	values  [3][]uint64 // columns
	spans   [3]listcode.Span
	ends    []uint32        // where each list ends, in entries
	forms   []listcode.Form // form of each list that is not empty
	sizes   listSizes
	firsts  listcode.Span
	scratch []uint32
	coded   listcode.Writer
}

// entries are consecutive entries of one list that are to be added to a block.
type entries struct {
	ids    []uint32
	values [3][]uint64
}

// head returns the first n entries.
func (e *entries) head(n int) (h entries) {
	h.ids = e.ids[:n]
	for i, v := range e.values {
		h.values[i] = v[:min(n, len(v))]
	}
	return h
}

// drop removes the first n entries.
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
	b.slots, b.sizes = 0, listSizes{}
	b.ids, b.ends, b.forms = b.ids[:0], b.ends[:0], b.forms[:0]
	b.firsts = listcode.Span{}
	for i := range b.values {
		b.values[i], b.spans[i] = b.values[i][:0], listcode.Span{}
	}
}

// empty reports whether the block has no lists.
func (b *blockBuilder) empty() bool { return b.slots == 0 }

// size returns how many bits the block would take with e as the list of node added. listBits is
// what the list takes without its first id; the caller computes it once per list, since that takes
// longer than all else here.
func (b *blockBuilder) size(node layout.NodeID, e entries, listBits int) int {
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
	sizes.add(listBits)
	units := sizes.units(width)
	opening, openingBits := count, listBits
	if !b.empty() {
		opening, openingBits = int(b.ends[0]), b.forms[0].Bits()
	}
	head := blockHeaderBytes*8 + s.directoryBits(endsDirectory, int(slots),
		listUnits(openingBits, width), units)
	if s.HasAttributes() {
		head += s.directoryBits(countsDirectory, int(slots), opening, len(b.ids)+count)
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

// roundUp returns bits rounded up to a whole byte.
func roundUp(bits int) int { return (bits + 7) &^ 7 }

// listSizes sums the sizes of lists before the width of their first ids is known: their bits
// without first ids, and how many lists leave each remainder of a unit.
type listSizes struct {
	bits  int
	rests [unitBits]int
}

func (l *listSizes) add(bits int) {
	l.bits += bits
	l.rests[bits%unitBits]++
}

// units returns the size of all lists in units, with first ids of width bits.
func (l *listSizes) units(width int) int {
	sum := l.bits
	for rest, lists := range l.rests {
		sum += lists * (width + (unitBits-(rest+width)%unitBits)%unitBits)
	}
	return sum / unitBits
}

// coding returns how lists are coded, without the base and width of first ids.
func (s *Shape) coding() listcode.Coding { return listcode.Coding{PosBits: s.posBits, Cells: true} }

// formOf returns the form in which a list is coded best.
func (s *Shape) formOf(ids []uint32) listcode.Form { return s.coding().FormOf(ids) }

// listBitsMost bounds the bits of a list without its first id.
func (s *Shape) listBitsMost(ids []uint32) int {
	return s.coding().BitsMost(len(ids), ids[0], ids[len(ids)-1])
}

// listUnits returns the units of a list of listBits bits with a first id of width bits.
func listUnits(listBits, width int) int { return (listBits + width + unitBits - 1) / unitBits }

// The directories of a block.
const (
	endsDirectory = iota
	countsDirectory
)

// directoryCoding returns how a directory is coded.
func (s *Shape) directoryCoding(which int) listcode.Coding {
	if which == countsDirectory {
		return listcode.Coding{FirstBits: s.posBits, PosBits: s.posBits}
	}
	return listcode.Coding{FirstBits: s.endBits, PosBits: s.posBits}
}

// directoryBits returns the bits of a directory with this number of ends, from first to last.
func (s *Shape) directoryBits(which, slots, first, last int) int {
	return roundUp(s.directoryCoding(which).Bits(slots, uint32(first), uint32(last)))
}

// fits reports whether the block has room for a list of node that takes listBits.
func (b *blockBuilder) fits(node layout.NodeID, e entries, listBits int) bool {
	return b.hasRoom(node, len(e.ids), listBits) ||
		b.size(node, e, listBits) <= 8*b.shape.BlockBytes
}

// hasRoom reports whether the block has room for a list of a number of entries however wide first
// ids and the directory become, which takes less time to know than the size. It may be false where
// the list fits, and is where edges have attributes.
func (b *blockBuilder) hasRoom(node layout.NodeID, entries, listBits int) bool {
	const directoryMost = 128 // bits of a directory besides its entries, and of padding
	s, slots := b.shape, 1
	if !b.empty() {
		slots = int(node-b.first) + 1
	}
	most := s.entriesMost()
	if s.HasAttributes() || slots > most || len(b.ids)+entries > most {
		return false
	}
	bits := b.sizes.bits + listBits + (len(b.forms)+1)*(32+unitBits-1)
	return 8*(blockHeaderBytes+listcode.Slack)+directoryMost+slots*s.endBits+bits <= 8*s.BlockBytes
}

// left bounds the bits that are left in the block for another list, without its first id.
func (b *blockBuilder) left() int {
	_, width := b.firsts.Range()
	return 8*(b.shape.BlockBytes-blockHeaderBytes-listcode.Slack) - unitBits*b.sizes.units(width)
}

// guesses is how many sizes room guesses before it halves the interval instead.
const guesses = 8

// room returns how many of the first entries fit in the block, given that not all of them do.
// Entries take about the same space, so the size of some predicts how many will fit.
func (b *blockBuilder) room(node layout.NodeID, e entries) int {
	limit := 8 * b.shape.BlockBytes
	low, high := 0, min(len(e.ids)-1, b.shape.entriesMost()-len(b.ids)) // low fit
	for try, n := 0, high; low < high; try++ {
		head := e.head(n)
		listBits := b.shape.formOf(head.ids).Bits()
		size := b.size(node, head, listBits)
		if size <= limit {
			low = n
		} else {
			high = n - 1
		}
		if n += (limit - size) / (listBits/n + 1); try >= guesses {
			n = (low + high + 1) / 2
		}
		n = min(max(n, low+1), high)
	}
	return low
}

// add appends entries e to the block, as the list of node from position start on. They must fit.
func (b *blockBuilder) add(node layout.NodeID, start uint32, e entries, form listcode.Form) {
	if b.empty() {
		b.first, b.start = node, start
	}
	for b.slots < int(node-b.first) {
		b.ends = append(b.ends, uint32(len(b.ids)))
		b.slots++
	}
	b.sizes.add(form.Bits())
	b.forms = append(b.forms, form)
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
}

// finish codes the block as number n, without its checksum. The result is valid until the next
// call.
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
	at := blockHeaderBytes
	at += b.directory(out, at, endsDirectory, b.listEnds(width))
	if b.shape.HasAttributes() {
		at += b.directory(out, at, countsDirectory, b.ends)
	}
	coding := listcode.Coding{Base: uint32(base), FirstBits: width, PosBits: b.shape.posBits,
		Cells: true}
	at += b.write(out[at:], func(w *listcode.Writer) {
		from, forms := uint32(0), b.forms
		for _, end := range b.ends {
			if end > from {
				coding.AppendAs(w, b.ids[from:end], forms[0])
				w.Add(0, -w.Bits()&(unitBits-1))
				forms = forms[1:]
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

// listEnds returns where the lists end, in units, with first ids of width bits.
func (b *blockBuilder) listEnds(width int) []uint32 {
	b.scratch = mem.Resize(b.scratch, b.slots)
	from, at, forms := uint32(0), 0, b.forms
	for i, end := range b.ends {
		if end > from {
			at += listUnits(forms[0].Bits(), width)
			forms = forms[1:]
		}
		b.scratch[i], from = uint32(at), end
	}
	return b.scratch
}

// directory writes ends to out, and their size in bits to the header, and returns their bytes.
func (b *blockBuilder) directory(out []byte, at, which int, ends []uint32) int {
	return b.write(out[at:], func(w *listcode.Writer) {
		b.shape.directoryCoding(which).Append(w, ends)
		binary.LittleEndian.PutUint32(out[40+4*which:], uint32(w.Bits()))
	})
}

// write writes a part of the block, and returns its bytes.
func (b *blockBuilder) write(out []byte, part func(w *listcode.Writer)) int {
	b.coded.Reset()
	part(&b.coded)
	if b.coded.Bits() > 8*(len(out)-listcode.Slack) {
		panic(fmt.Sprintf("BUG: %d bits in %d bytes of a block", b.coded.Bits(), len(out)))
	}
	return b.coded.CopyTo(out)
}
