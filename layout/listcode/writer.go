package listcode

import "encoding/binary"

// Writer collects fields of bits.
type Writer struct {
	buf  []byte // whole words
	word uint64 // the bits after them
	used int    // bits used of word
}

// Reset empties the writer.
func (w *Writer) Reset() { *w = Writer{buf: w.buf[:0]} }

// Bits returns the number of bits written.
func (w *Writer) Bits() int { return 8*len(w.buf) + w.used }

// Add appends a value of width bits, at most 57. Higher bits must be 0.
func (w *Writer) Add(v uint64, width int) {
	w.word |= v << w.used
	if w.used += width; w.used < 64 {
		return
	}
	w.buf = binary.LittleEndian.AppendUint64(w.buf, w.word)
	w.used -= 64
	w.word = v >> (width - w.used)
}

// CopyTo writes the bits to b, which must have room for them, and returns the number of bytes.
func (w *Writer) CopyTo(b []byte) int {
	n := copy(b, w.buf)
	for v, left := w.word, w.used; left > 0; left -= 8 {
		b[n] = byte(v)
		v >>= 8
		n++
	}
	return n
}
