package listcode

import "math/bits"

// A column is the values of some entries at the width that they need: a base, of which so many bits
// are known to be enough, a shift (6 bits), a width (7 bits), and of each value less the base,
// shifted to the right, that many bits. So equal values take none, and floats that are small
// integers as few bits as these.
const (
	shiftBits  = 6
	widthBits  = 7
	columnHead = shiftBits + widthBits
)

// Span is what a column needs to know of its values.
type Span struct {
	any       bool
	low, high uint64
	set       uint64 // the bits that some value has
}

// Add takes a value in.
func (s *Span) Add(v uint64) {
	if !s.any {
		*s = Span{any: true, low: v, high: v, set: v}
		return
	}
	s.low, s.high, s.set = min(s.low, v), max(s.high, v), s.set|v
}

// Join takes the values of another span in.
func (s *Span) Join(o Span) {
	if o.any {
		s.Add(o.low)
		s.Add(o.high)
		s.set |= o.set
	}
}

// Range is the least value, and the bits of the largest less the least.
func (s *Span) Range() (low uint64, width int) { return s.low, bits.Len64(s.high - s.low) }

// shift is how many low bits no value has; of zeros none, so that shift and width are at most what
// a value takes.
func (s *Span) shift() int { return bits.TrailingZeros64(s.set) & 63 }
func (s *Span) width() int { return bits.Len64((s.high - s.low) >> s.shift()) }

// Bits is what a column of so many values of at most valueBits bits takes.
func (s *Span) Bits(values, valueBits int) int {
	return valueBits + columnHead + values*s.width()
}

// AppendColumn writes values, whose span is s, of at most valueBits bits.
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

// wide is the value of width bits at a place, at most 64.
func wide(b []byte, at uint64, width int) uint64 {
	if width <= 57 {
		return Field(b, at, width)
	}
	return Field(b, at, 32) | Field(b, at+32, width-32)<<32
}

// Column is where the values of one column are.
type Column struct {
	base, at     uint64
	shift, width uint8
	End          uint64 // the place after it
}

// ParseColumn reads the head of a column of so many values at a place, and checks that it ends at
// end at the latest. Slack bytes follow end.
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

// At is value number i.
func (c *Column) At(b []byte, i uint32) uint64 {
	return c.base + wide(b, c.at+uint64(i)*uint64(c.width), int(c.width))<<c.shift
}
