package ingest

import (
	"math"

	"gdb/layout/listfile"
)

// edgeCodec packs an edge into words whose order is the order of the stored lists: destination,
// source, type, time, split, weight. So equal edges are neighbors after sorting, whatever the runs
// were.
//
//	word 0   first id (32) | second id (32)
//	word 1   type (16) | split (16) | weight (32)              if edges have no time
//	words 1, 2   type (16) | time (64) | split (16) | weight (32)   if they have
//
// A split is its number in Info.EdgeSplits plus one, or zero. Times have their sign bit flipped and
// weights are mapped to integers of the same order.
type edgeCodec struct {
	typed, weighted, timed, split bool
}

// payload is the number of words after the ids.
func (c edgeCodec) payload() int {
	switch {
	case c.timed:
		return 2
	case c.typed || c.weighted || c.split:
		return 1
	}
	return 0
}

// pack writes the payload words of an edge.
func (c edgeCodec) pack(out []uint64, typ uint16, weight float32, time int64, split uint16) {
	last := uint64(split)<<32 | uint64(orderedF32(weight))
	switch c.payload() {
	case 1:
		out[0] = uint64(typ)<<48 | last
	case 2:
		t := uint64(time) ^ 1<<63
		out[0] = uint64(typ)<<48 | t>>16
		out[1] = t<<48 | last
	}
}

// splitOf returns the split of a record.
func (c edgeCodec) splitOf(rec []uint64) uint16 {
	if !c.split {
		return 0
	}
	return uint16(rec[len(rec)-1] >> 32)
}

// weightOf returns the weight of a record that has one.
func (c edgeCodec) weightOf(rec []uint64) float32 { return unorderedF32(uint32(rec[len(rec)-1])) }

// setWeight changes it.
func (c edgeCodec) setWeight(rec []uint64, w float32) {
	last := &rec[len(rec)-1]
	*last = *last>>32<<32 | uint64(orderedF32(w))
}

// unpack is the inverse of pack.
func (c edgeCodec) unpack(words []uint64, e *listfile.Edge) {
	switch c.payload() {
	case 1:
		e.Type, e.Weight = uint16(words[0]>>48), unorderedF32(uint32(words[0]))
	case 2:
		e.Type, e.Weight = uint16(words[0]>>48), unorderedF32(uint32(words[1]))
		e.Time = int64((words[0]<<16 | words[1]>>48) ^ 1<<63)
	}
}

// same says whether two records are duplicates: the same ends, type and time. Of edges that
// differ in split and weight only, the one of the first split comes first and is kept,
// with the weight that --merge makes of all.
func (c edgeCodec) same(a, b []uint64) bool {
	if a[0] != b[0] {
		return false
	}
	switch c.payload() {
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
