// Package listcode codes sorted lists of node ids in bits so that any entry can be read without the
// others. A list is coded as packed differences to the first id, as Elias-Fano of the whole list,
// or as Elias-Fano in cells. The package also packs columns of values that are parallel to lists.
// Places are counted in bits from the start of a byte slice.
package listcode

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

//go:generate go run -tags avogen ./gen

// A list of n+1 ids, of which a is the first and z the last, is these fields, one after the other,
// from the low bits of each byte on:
//
//	count    4 bits: n, or 14 and 8 bits of n-14, or 15 and 24 bits of n-270
//	first    a, less Coding.Base, in Coding.FirstBits
//	way      6 bits, if n > 0: w of 0 … 32 packed in w bits, 33+l Elias-Fano with l low bits, 63
//	         Elias-Fano in cells
//	entries  1 … n, each less a
//
// Packed entries have n fields of one width. Elias-Fano (Elias 1974, Fano 1971) cuts an entry in l
// low bits and the rest, h:
//
//	samples  where in the upper bits the ones number 64, 128, … are, Coding.PosBits each
//	low      n fields of l bits
//	upper    of each entry a one at place h + its number; all other places are 0
//
// The upper bits end with their last one, so there are n + ((z-a)>>l). Entry number i is found from
// the place of one number i, minus i, and from the low bits: two places of memory, and the sample.
//
// Cells are in cells.go.
const (
	countBits  = 4
	countShort = 1<<countBits - 2 // from here on 8 bits more
	countLong  = countShort + 1<<8
	longBits   = 24
	wayBits    = 6
	wayEF      = 33
	wayCells   = 63 // as Elias-Fano, it is never smaller than packed: it would have 30 low bits
	// sampleEvery is the number of ones between samples: with one for 32 a list takes a quarter of
	// a bit more per entry, and with one for 128 a draw is a tenth slower.
	sampleEvery = 64
)

// countMost is the largest number of entries of a list.
const countMost = countLong + 1<<longBits

// Slack is how many bytes must follow lists and columns, so that a field can be read with one load.
const Slack = 8

// Coding is what lists in one block have in common.
type Coding struct {
	Base      uint32 // the least first id
	FirstBits int    // bits of the largest first id minus Base; at most 32
	PosBits   int    // bits of a place in the bits of a list; at most 32
	Cells     bool   // lists are written in cells where that takes little more
}

// ErrList is wrapped by every error of a damaged list.
var ErrList = errors.New("coded list")

// load returns at least 57 bits from place at on. Slack bytes must follow the place.
func load(b []byte, at uint64) uint64 { return binary.LittleEndian.Uint64(b[at>>3:]) >> (at & 7) }

// Field returns the value of width bits, at most 57, at a place.
func Field(b []byte, at uint64, width int) uint64 { return load(b, at) & (1<<width - 1) }

// headBits returns the bits of count and first.
func (c Coding) headBits(n int) int {
	switch {
	case n < countShort:
		return countBits + c.FirstBits
	case n < countLong:
		return countBits + 8 + c.FirstBits
	}
	return countBits + longBits + c.FirstBits
}

// lowBits returns how many low bits make Elias-Fano smallest, for n entries up to most.
func lowBits(n int, most uint32) int { return max(0, bits.Len32(most/uint32(n))-1) }

// eliasFanoBits returns the bits of n entries up to most as Elias-Fano.
func (c Coding) eliasFanoBits(n int, most uint32) int {
	l := lowBits(n, most)
	return (n-1)/sampleEvery*c.PosBits + n*(l+1) + int(most>>l)
}

// Form is the way to code a list, and its size. It does not depend on Base and FirstBits.
type Form struct {
	way   int
	bits  int   // bits of the list without its first id
	cells cells // set if way is wayCells
}

// Bits returns the bits of the list without its first id.
func (f Form) Bits() int { return f.bits }

// whole returns the smallest form of n entries up to most, except cells. Packed entries may take a
// sixteenth more, since they are read faster.
func (c Coding) whole(n int, most uint32) (way, size int) {
	packed, ef := n*bits.Len32(most), c.eliasFanoBits(n, most)
	if packed <= ef+ef/16 {
		return bits.Len32(most), packed
	}
	return wayEF + lowBits(n, most), ef
}

// FormOf returns the best form of a list of at least one id.
func (c Coding) FormOf(list []uint32) Form {
	n, first := len(list)-1, list[0]
	if n == 0 {
		return Form{bits: countBits}
	}
	f := Form{}
	f.way, f.bits = c.whole(n, list[n]-first)
	if c.Cells && f.way >= wayEF {
		if k, size := fitCells(list[1:], first); size <= f.bits+f.bits/cellsMore {
			f = Form{wayCells, size, k}
		}
	}
	f.bits += c.headBits(n) - c.FirstBits + wayBits
	return f
}

// BitsMost bounds Form.Bits of a list of count ids from first to last, whatever the ids between.
func (c Coding) BitsMost(count int, first, last uint32) int {
	whole := c.Bits(count, first, last) - c.FirstBits
	return whole + whole/cellsMore
}

// Bits returns the bits of a list of count ids, at least one, from first to last, if it is not in
// cells.
func (c Coding) Bits(count int, first, last uint32) int {
	n := count - 1
	if n == 0 {
		return c.headBits(0)
	}
	_, size := c.whole(n, last-first)
	return c.headBits(n) + wayBits + size
}

// Append writes a sorted list of 1 to countMost ids.
func (c Coding) Append(w *Writer, list []uint32) { c.AppendAs(w, list, c.FormOf(list)) }

// AppendAs writes a list in a form that FormOf returned for it.
func (c Coding) AppendAs(w *Writer, list []uint32, f Form) {
	n, first := len(list)-1, list[0]
	switch {
	case n < countShort:
		w.Add(uint64(n), countBits)
	case n < countLong:
		w.Add(uint64(n-countShort)<<countBits|countShort, countBits+8)
	default:
		w.Add(uint64(n-countLong)<<countBits|(countShort+1), countBits+longBits)
	}
	w.Add(uint64(first-c.Base), c.FirstBits)
	if n == 0 {
		return
	}
	w.Add(uint64(f.way), wayBits)
	switch {
	case f.way == wayCells:
		f.cells.append(w, list[1:], first)
	case f.way < wayEF:
		w.addLow(list[1:], first, f.way)
	default:
		c.appendEliasFano(w, list[1:], first, f.way-wayEF)
	}
}

func (c Coding) appendEliasFano(w *Writer, list []uint32, first uint32, l int) {
	for i := sampleEvery; i < len(list); i += sampleEvery {
		w.Add(uint64((list[i]-first)>>l)+uint64(i), c.PosBits)
	}
	w.addLow(list, first, l)
	high := uint32(0)
	for _, v := range list {
		h := (v - first) >> l
		for ; h-high >= 32; high += 32 {
			w.Add(0, 32)
		}
		w.Add(1<<(h-high), int(h-high)+1)
		high = h
	}
}

// damage returns an error that wraps ErrList.
func damage(format string, args ...any) error {
	return fmt.Errorf("%w "+format, append([]any{ErrList}, args...)...)
}

// Writer collects fields of bits.
type Writer struct {
	buf []byte // beyond the last bit there is room for a field and for what kernels spoil
	at  uint64 // bits written; those after them in their byte are 0
}

// writerSlack is how many bytes follow the last bit of a Writer.
const writerSlack = 24

// Reset empties the writer.
func (w *Writer) Reset() {
	if w.at = 0; len(w.buf) > 0 {
		w.buf[0] = 0
	}
}

// Bits returns the number of bits written.
func (w *Writer) Bits() int { return int(w.at) }

// room makes room for bits.
func (w *Writer) room(bits uint64) {
	if need := (w.at+bits)/8 + writerSlack; need > uint64(len(w.buf)) {
		w.buf = append(w.buf, make([]byte, max(need, 4096))...)
	}
}

// Add appends a value of width bits, at most 57. Higher bits must be 0.
func (w *Writer) Add(v uint64, width int) {
	i := w.at >> 3
	if i+writerSlack > uint64(len(w.buf)) {
		w.room(uint64(width))
	}
	b := w.buf[i : i+9]
	binary.LittleEndian.PutUint64(b, uint64(b[0])|v<<(w.at&7))
	b[8] = 0 // all 64 bits may be used
	w.at += uint64(width)
}

// addLowPlain appends the low bits of each id less first, at most 32 of each, as many ids at a time
// as a field has room for.
func (w *Writer) addLowPlain(list []uint32, first uint32, width int) {
	mask := uint64(1)<<width - 1
	word, used := uint64(0), 0
	for _, v := range list {
		if used+width > 57 {
			w.Add(word, used)
			word, used = 0, 0
		}
		word |= (uint64(v-first) & mask) << (used & 63)
		used += width
	}
	w.Add(word, used)
}

// CopyTo writes the bits to b, which must have room for them, and returns the number of bytes.
func (w *Writer) CopyTo(b []byte) int { return copy(b, w.buf[:(w.at+7)/8]) }
