package rowfile

import (
	"gdb/kv"
	"gdb/layout"
)

// Split says how rows of several types are cut into pieces of one width, so that what keeps rows in
// places of equal size keeps little more of each than it has values: a row of 48 values beside rows
// of 192 is one piece, these are four, and a row of no values has none. Pieces are numbered
// through, in the order of rows, and stand in for rows in all that reads, caches and plans them.
type Split struct {
	Dim   int    // values of a piece
	Rows  uint64 // number of all pieces
	Wide  int    // values of the widest row
	types []splitType
}

// splitType is the rows of a type.
type splitType struct {
	first, end uint64 // rows
	base       uint64 // number of the first piece
	pieces     uint64 // of each row
	dim        int    // values of a row
}

// pieceCost is about what a place takes besides its values, in bytes.
const pieceCost = 20

// splitGain is what pieces must leave of the memory of whole rows, all being kept.
const splitGain = 0.8

// piecesMost bounds the pieces of a row.
const piecesMost = 16

// NewSplit returns the split of rows with which keeping all of them takes least memory, or nil if
// whole rows take little more.
func NewSplit(m kv.RowsMeta, nodes uint64) *Split {
	if len(m.Sections) == 0 || m.DType == Sparse || m.Dim == 0 {
		return nil
	}
	cost := func(width int) (bytes, pieces uint64) {
		for i, s := range m.Sections {
			pieces += (sectionEnd(m.Sections, i, nodes) - s.First) *
				uint64((s.Dim+width-1)/width)
		}
		return pieces * uint64(4*width+pieceCost), pieces
	}
	whole := float64(nodes) * float64(4*m.Dim+pieceCost)
	best, least := 0, splitGain*whole
	for n := 1; n <= piecesMost; n++ {
		width := (m.Dim + n - 1) / n
		if bytes, pieces := cost(width); float64(bytes) < least && pieces <= layout.MaxNodes {
			best, least = width, float64(bytes)
		}
	}
	if best == 0 {
		return nil
	}
	return newSplit(m, nodes, best)
}

func newSplit(m kv.RowsMeta, nodes uint64, width int) *Split {
	s := &Split{Dim: width, Wide: m.Dim}
	for i, of := range m.Sections {
		t := splitType{first: of.First, end: sectionEnd(m.Sections, i, nodes), base: s.Rows,
			pieces: uint64((of.Dim + width - 1) / width), dim: of.Dim}
		s.Rows += (t.end - t.first) * t.pieces
		s.types = append(s.types, t)
	}
	return s
}

// sectionEnd returns the row after the last of section i.
func sectionEnd(all []kv.RowsSection, i int, nodes uint64) uint64 {
	if i+1 < len(all) {
		return all[i+1].First
	}
	return nodes
}

// Most returns how many pieces a row has at most.
func (s *Split) Most() int { return (s.Wide + s.Dim - 1) / s.Dim }

// Count returns how many pieces the rows of some nodes have.
func (s *Split) Count(nodes []layout.NodeID) (pieces int) {
	for _, v := range nodes {
		pieces += int(s.of(v).pieces)
	}
	return pieces
}

// Offsets writes to off, for each of some nodes and the end, how many pieces rows before it have.
func (s *Split) Offsets(nodes []layout.NodeID, off []uint32) {
	off[0] = 0
	for i, v := range nodes {
		off[i+1] = off[i] + uint32(s.of(v).pieces)
	}
}

// Append appends the pieces of the rows of nodes to the list to, node by node. A nil Split returns
// nodes: rows are whole.
func (s *Split) Append(nodes, to []layout.NodeID) []layout.NodeID {
	if s == nil {
		return nodes
	}
	for _, v := range nodes {
		t := s.of(v)
		first := t.base + (uint64(v)-t.first)*t.pieces
		for i := range t.pieces {
			to = append(to, layout.NodeID(first+i))
		}
	}
	return to
}

// of returns the type of a node; one behind the last counts as of the last type.
func (s *Split) of(v layout.NodeID) *splitType {
	for i := range s.types {
		if t := &s.types[i]; uint64(v) < t.end {
			return t
		}
	}
	return &s.types[len(s.types)-1]
}

// Floats returns how many values of memory Unpack takes for the rows of a number of nodes.
func (s *Split) Floats(nodes int) int {
	return nodes * s.Dim * s.Most()
}

// Packed returns the part of x, of Floats values, that holds pieces before they are unpacked.
func (s *Split) Packed(x []float32, pieces int) []float32 { return x[len(x)-pieces*s.Dim:] }

// Unpack makes the pieces of the rows of nodes, which Packed holds, whole rows as wide as the
// widest, zeros being behind the values of a narrower one, and returns them: (nodes, width), in the
// memory of x. Time: O(nodes · width).
func (s *Split) Unpack(nodes []layout.NodeID, x []float32, pieces int) []float32 {
	from, to := s.Packed(x, pieces), 0
	for _, v := range nodes {
		t := s.of(v)
		row := x[to : to+s.Wide]
		n := copy(row, from[:t.dim]) // no later piece is overwritten: see Floats
		clear(row[n:])
		from, to = from[int(t.pieces)*s.Dim:], to+s.Wide
	}
	return x[:to:to]
}

// Join puts rows together from a table of pieces, where row i has those of the numbers
// at[off[i]:off[i+1]], and writes them whole to out, as Unpack does.
func (s *Split) Join(off, at []uint32, table, out []float32) {
	for i := range len(off) - 1 {
		row := out[i*s.Wide : (i+1)*s.Wide]
		for _, p := range at[off[i]:off[i+1]] {
			row = row[copy(row, table[int(p)*s.Dim:][:s.Dim]):]
		}
		clear(row)
	}
}

// Plain reports whether rows are read as they are stored: neither scaled, packed nor sparse.
func (r *Reader) Plain() bool { return !r.scaled && !r.packed && !r.sparse }

// Split returns a reader of the pieces of the rows of the same file, as if each were a row. The
// reader it is made from, which must be plain, is closed last.
func (r *Reader) Split(s *Split) *Reader {
	p := *r
	p.shape.Dim, p.shape.Nodes = s.Dim, s.Rows
	p.shape.RowBytes = s.Dim * elementBytes(r.shape.DType)
	p.shape.sections = nil
	for i, of := range r.shape.sections {
		t := s.types[i]
		of.First, of.nodes, of.pieces = t.base, of.nodes*t.pieces, int64(t.pieces)
		p.shape.sections = append(p.shape.sections, of)
	}
	return &p
}
