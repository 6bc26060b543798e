package listcode

import "math/bits"

// A column is the values of some entries, coded in as few bits as they need: a base in a known
// number of bits, a shift (6 bits), a width (7 bits), and for each value that many bits of the
// value minus the base, shifted right. So equal values take no bits, and floats that are small
// integers take as few bits as the integers.
const (
	shiftBits  = 6
	widthBits  = 7
	columnHead = shiftBits + widthBits
)

// Span describes the values of a column, as its size depends on them.
type Span struct {
	any       bool
	low, high uint64
	set       uint64 // bits that any value has set
}

// Add adds a value.
func (s *Span) Add(v uint64) {
	if !s.any {
		*s = Span{any: true, low: v, high: v, set: v}
		return
	}
	s.low, s.high, s.set = min(s.low, v), max(s.high, v), s.set|v
}

// Range returns the least value, and the number of bits of the largest value minus the least.
func (s *Span) Range() (low uint64, width int) { return s.low, bits.Len64(s.high - s.low) }

// shift returns how many low bits are zero in all values. It is 0 if all values are 0, so that
// shift and width together are at most the bits of a value.
func (s *Span) shift() int { return bits.TrailingZeros64(s.set) & 63 }
func (s *Span) width() int { return bits.Len64((s.high - s.low) >> s.shift()) }

// Bits returns the bits of a column of this number of values, of at most valueBits bits each.
func (s *Span) Bits(values, valueBits int) int {
	return valueBits + columnHead + values*s.width()
}

// AppendColumn writes values, of at most valueBits bits each, whose span is s.
func AppendColumn(w *Writer, values []uint64, s Span, valueBits int) {
	shift, width := s.shift(), s.width()
	addWide(w, s.low, valueBits)
	w.Add(uint64(shift)|uint64(width)<<shiftBits, columnHead)
	for _, v := range values {
		addWide(w, (v-s.low)>>shift, width)
	}
}

func addWide(w *Writer, v uint64, width int) {
	w.Add(v&(1<<32-1), min(width, 32))
	if width > 32 {
		w.Add(v>>32, width-32)
	}
}

// wide returns the value of width bits, at most 64, at a place.
func wide(b []byte, at uint64, width int) uint64 {
	if width <= 57 {
		return Field(b, at, width)
	}
	return Field(b, at, 32) | Field(b, at+32, width-32)<<32
}

// Column locates the values of one column.
type Column struct {
	base, at     uint64
	shift, width uint8
	End          uint64 // place after the column, in bits
}

// ParseColumn parses the head of a column of this number of values at a place, and checks that it
// does not go beyond end. Slack bytes must follow end.
func ParseColumn(b []byte, at, end uint64, values, valueBits int) (Column, error) {
	head := uint64(valueBits + columnHead)
	if end>>3+Slack > uint64(len(b)) || at > end || end-at < head {
		return Column{}, damage("has a column at bit %d of %d", at, end)
	}
	word := Field(b, at+uint64(valueBits), columnHead)
	c := Column{base: wide(b, at, valueBits), at: at + head,
		shift: uint8(word & (1<<shiftBits - 1)), width: uint8(word >> shiftBits)}
	c.End = c.at + uint64(values)*uint64(c.width)
	if int(c.width)+int(c.shift) > valueBits || c.End > end {
		return c, damage("has a column of %d values of %d bits at bit %d of %d", values,
			c.width, at, end)
	}
	return c, nil
}

// At returns value number i.
func (c *Column) At(b []byte, i uint32) uint64 {
	return c.base + wide(b, c.at+uint64(i)*uint64(c.width), int(c.width))<<c.shift
}
