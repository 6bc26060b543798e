// Package stream has what an ingest does with edges and features while they stream by, in bounded
// memory: it packs edges into words that sort in the order of the stored lists (EdgeCodec), counts
// degrees (DegreeCounters, SortedDegrees) and pairs of nodes, merges the weights of parallel edges,
// and tells and scales features that need it.
package stream

import (
	"encoding/binary"
	"math"

	"gdb/layout/listfile"
)

// EdgeCodec packs an edge into words whose order is the order of the stored lists: destination,
// source, type, time, split, direction, weight. So equal edges are neighbors once sorted, whatever
// the runs were.
//
//	word 0   first id (32) | second id (32)
//	word 1   type (16) | split (15) | reverse (1) | weight (32)                   without time
//	words 1, 2   type (16) | time (64) | split (15) | reverse (1) | weight (32)   with time
//	last word    number of the edge in the source               if edges are numbered
//	last words   number (40) | row of its table (8 RowBytes)    if they carry their rows too
//
// A split is its number, from 1, or zero where there are none or they are drawn. The bit after it
// is set if the edge is the reverse of one of the source. Times have their sign bit flipped and
// weights are mapped to integers of the same order.
type EdgeCodec struct {
	Typed, Weighted, Timed bool
	// Split keeps the split of an edge, and whether it is a reverse edge.
	Split bool
	// Numbered keeps the order of the source, by which the last of parallel edges is known.
	Numbered bool
	// RowBytes is how many bytes of the row of its table an edge carries behind its number: 0 or
	// one of RowSizes.
	RowBytes int
}

// RowSizes are the sizes of rows that edges may carry. With a number each fills whole words.
var RowSizes = []int{3, 11, 19}

// rowBits is how far the number of an edge that carries its row is shifted. It has 40 bits.
const rowBits = 24

// NumbersMost is how many edges that carry their rows can be numbered.
const NumbersMost = 1 << (64 - rowBits)

// Payload returns the number of words after the ids.
func (c EdgeCodec) Payload() int { return c.valueWords() + c.tailWords() }

// tailWords returns the number of words for the number of an edge and its row.
func (c EdgeCodec) tailWords() int {
	switch {
	case !c.Numbered:
		return 0
	case c.RowBytes == 0:
		return 1
	}
	return (c.RowBytes + (64-rowBits)/8) / 8
}

// Values returns the codec of records without the numbers of edges and their rows.
func (c EdgeCodec) Values() EdgeCodec {
	c.Numbered, c.RowBytes = false, 0
	return c
}

// valueWords returns the number of words for all but the ids and the number of an edge.
func (c EdgeCodec) valueWords() int {
	switch {
	case c.Timed:
		return 2
	case c.Typed || c.Weighted || c.Split:
		return 1
	}
	return 0
}

// Pack writes the payload words of an edge; number is its place in the source.
func (c EdgeCodec) Pack(out []uint64, typ uint16, weight float32, time int64, split uint16,
	number uint64) {
	last := uint64(split)<<33 | uint64(orderedF32(weight))
	if c.Numbered && c.RowBytes > 0 {
		number <<= rowBits
	}
	if c.Numbered {
		out[c.valueWords()] = number
	}
	switch c.valueWords() {
	case 1:
		out[0] = uint64(typ)<<48 | last
	case 2:
		t := uint64(time) ^ 1<<63
		out[0] = uint64(typ)<<48 | t>>16
		out[1] = t<<48 | last
	}
}

// reversedBit is set in the last value of a reverse edge.
const reversedBit = 1 << 32

// SplitOf returns the number of the split of a record, and whether it is a reverse edge.
func (c EdgeCodec) SplitOf(rec []uint64) (number uint16, reversed bool) {
	if !c.Split {
		return 0, false
	}
	last := *c.lastValue(rec)
	return uint16(last>>32) >> 1, last&reversedBit != 0
}

// TypeOf returns the type of an edge, given the words that follow the ids.
func (c EdgeCodec) TypeOf(words []uint64) uint16 {
	if !c.Typed {
		return 0
	}
	return uint16(words[0] >> 48)
}

// SetReversed marks a record, or the part of it that follows the ids, as a reverse edge or as none.
func (c EdgeCodec) SetReversed(rec []uint64, reversed bool) {
	if !c.Split {
		return
	}
	last := c.lastValue(rec)
	*last &^= reversedBit
	if reversed {
		*last |= reversedBit
	}
}

// lastValue returns the word of a record that has split and weight.
func (c EdgeCodec) lastValue(rec []uint64) *uint64 {
	return &rec[len(rec)-1-c.tailWords()]
}

// NumberOf returns the place of an edge in the source; 0 if edges are not numbered.
func (c EdgeCodec) NumberOf(rec []uint64) uint64 {
	switch {
	case !c.Numbered:
		return 0
	case c.RowBytes > 0:
		return rec[len(rec)-c.tailWords()] >> rowBits
	}
	return rec[len(rec)-1]
}

// RowBuffer has room for the last words of a record.
type RowBuffer [8 * 3]byte

// rowAt is where the row begins in the last words of a record.
const rowAt = 8 - rowBits/8

// SetRow puts the row of its table, of at most RowBytes, into a record that Pack has packed.
func (c EdgeCodec) SetRow(rec []uint64, row []byte) {
	var b RowBuffer
	copy(b[rowAt:], row)
	tail := rec[len(rec)-c.tailWords():]
	tail[0] |= binary.BigEndian.Uint64(b[:])
	for i := 1; i < len(tail); i++ {
		tail[i] = binary.BigEndian.Uint64(b[8*i:])
	}
}

// RowOf returns what SetRow put into a record, with zeros behind it up to RowBytes, in b.
func (c EdgeCodec) RowOf(rec []uint64, b *RowBuffer) []byte {
	tail := rec[len(rec)-c.tailWords():]
	for i, w := range tail {
		binary.BigEndian.PutUint64(b[8*i:], w)
	}
	return b[rowAt : 8*len(tail)]
}

// WeightOf returns the weight of a record that has one.
func (c EdgeCodec) WeightOf(rec []uint64) float32 { return unorderedF32(uint32(*c.lastValue(rec))) }

// SetWeight changes it.
func (c EdgeCodec) SetWeight(rec []uint64, w float32) {
	last := c.lastValue(rec)
	*last = *last>>32<<32 | uint64(orderedF32(w))
}

// Unpack inverts Pack.
func (c EdgeCodec) Unpack(words []uint64, e *listfile.Edge) {
	switch c.valueWords() {
	case 1:
		e.Type, e.Weight = uint16(words[0]>>48), unorderedF32(uint32(words[0]))
	case 2:
		e.Type, e.Weight = uint16(words[0]>>48), unorderedF32(uint32(words[1]))
		e.Time = int64((words[0]<<16 | words[1]>>48) ^ 1<<63)
	}
}

// Same reports whether two records are duplicates: the same ends, type and time. Of edges that
// differ in split and weight only, the one of the first split comes first and is kept, with the
// weight that --merge makes of all.
func (c EdgeCodec) Same(a, b []uint64) bool {
	if a[0] != b[0] {
		return false
	}
	switch c.valueWords() {
	case 1:
		return a[1]>>48 == b[1]>>48
	case 2:
		return a[1] == b[1] && a[2]>>48 == b[2]>>48
	}
	return true
}

// orderedF32 maps floats to integers of the same order.
func orderedF32(f float32) uint32 {
	b := math.Float32bits(f)
	if b>>31 != 0 {
		return ^b
	}
	return b | 1<<31
}

func unorderedF32(o uint32) float32 {
	if o>>31 != 0 {
		return math.Float32frombits(o &^ (1 << 31))
	}
	return math.Float32frombits(^o)
}

// MergeNames are the values of --merge: what becomes of the weights of parallel edges, of which one
// is kept. The first is the default.
var MergeNames = []string{"sum", "mean", "min", "max", "last", "error"}

// WeightMerge makes one weight of the weights of parallel edges, which come in any order.
type WeightMerge struct {
	how         string // "" is the first of MergeNames
	sum         float64
	least, most float32
	last        float32
	lastNumber  uint64 // of the edge whose weight is last
	edges       int
}

// Begin starts with the weight of an edge, and its number in the source.
func (m *WeightMerge) Begin(w float32, number uint64) {
	m.sum, m.least, m.most, m.edges = 0, w, w, 0
	m.last, m.lastNumber = w, number
	m.Add(w, number)
}

// Add takes the weight of a parallel edge, and its number in the source.
func (m *WeightMerge) Add(w float32, number uint64) {
	m.sum += float64(w)
	m.least, m.most = min(m.least, w), max(m.most, w)
	if number > m.lastNumber {
		m.last, m.lastNumber = w, number
	}
	m.edges++
}

// Weight returns the weight of the edge that is kept; not ok if weights should not differ, and do.
func (m *WeightMerge) Weight() (w float32, ok bool) {
	switch m.how {
	case "mean":
		return float32(m.sum / float64(m.edges)), true
	case "min":
		return m.least, true
	case "max":
		return m.most, true
	case "last":
		return m.last, true
	case "error":
		return m.least, m.least == m.most
	}
	return float32(m.sum), true
}

// NewWeightMerge merges as one of MergeNames says; "" is the first.
func NewWeightMerge(how string) *WeightMerge { return &WeightMerge{how: how} }
