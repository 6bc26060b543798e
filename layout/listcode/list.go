package listcode

import "math/bits"

// List locates the parts of one coded list, in bits from the beginning of some bytes.
type List struct {
	Count    uint32 // number of its ids
	first    uint32
	width    uint8 // bits of a packed entry, or of low bits
	way      uint8
	cells    cells
	samples  uint64
	low      uint64 // place of the packed entries, the low bits, or the cells
	upper    uint64
	end      uint64
	posWidth uint8
}

// Parse parses the head of the list in bits from … end-1 of b, and checks that all of known size is
// inside. It accepts any bytes without panic; Slack bytes must follow end.
func (c Coding) Parse(b []byte, from, end uint64) (l List, err error) {
	return l, c.ParseTo(&l, b, from, end)
}

// ParseTo does what Parse does, in place, for callers that parse all lists of a block.
func (c *Coding) ParseTo(l *List, b []byte, from, end uint64) error {
	if end < from || end>>3+Slack > uint64(len(b)) || end-from < countBits {
		return damage("of bits %d to %d in %d bytes", from, end, len(b))
	}
	word, n := load(b, from), uint64(0)
	switch n = word & (1<<countBits - 1); n {
	case countShort:
		n += word >> countBits & (1<<8 - 1)
	case countShort + 1:
		n = countLong + word>>countBits&(1<<longBits-1)
	}
	at := from + uint64(c.headBits(int(n)))
	*l = List{Count: uint32(n) + 1, end: end, low: at, upper: end, posWidth: uint8(c.PosBits)}
	if at > end || n > 0 && at+wayBits > end {
		return damage("of %d ids ends after %d bits", l.Count, end-from)
	}
	word = load(b, at-uint64(c.FirstBits))
	l.first = c.Base + uint32(word&(1<<c.FirstBits-1))
	if n == 0 {
		return nil
	}
	way := uint8(word >> c.FirstBits & (1<<wayBits - 1))
	at += wayBits
	l.way, l.low, l.width = way, at, way
	switch {
	case way == wayCells:
		return l.parseCells(b, n)
	case way >= wayEF:
		l.width, l.samples = way-wayEF, at
		l.low += (n - 1) / sampleEvery * uint64(c.PosBits)
	}
	l.upper = l.low + n*uint64(l.width)
	if l.upper > end || way >= wayEF && l.upper+n > end {
		return damage("of %d ids, way %d, ends after %d bits", l.Count, way, end-from)
	}
	return nil
}

// parseCells parses the head of n entries in cells.
func (l *List) parseCells(b []byte, n uint64) error {
	room := l.end - l.low
	l.cells = cellsOf(load(b, l.low))
	l.low += cellsHead
	l.width = l.cells.low
	if !l.cells.valid() {
		return damage("has cells %+v, which cannot be", l.cells)
	}
	if cellsHead+l.cells.size(n) > room {
		return damage("of %d ids in cells %+v ends after %d bits", l.Count, l.cells, room)
	}
	return nil
}

// End returns the place after the list, in bits.
func (l *List) End() uint64 { return l.end }

// At returns entry k, which must be below Count. For a damaged list it may return any value, or
// false; Decode checks a list.
func (l *List) At(b []byte, k uint32) (id uint32, ok bool) {
	if k == 0 {
		return l.first, true
	}
	i := uint64(k - 1)
	if l.way == wayCells {
		id, ok := l.cells.at(b, l.low, i)
		return l.first + id, ok
	}
	low := Field(b, l.low+i*uint64(l.width), int(l.width))
	if l.way < wayEF {
		return l.first + uint32(low), true
	}
	at := selectOne(b, l.from(b, i), i%sampleEvery, l.end)
	return l.first + uint32((at-l.upper-i)<<l.width|low), at < l.end
}

// from returns a place in the upper bits from which on one number i is one number i%sampleEvery.
func (l *List) from(b []byte, i uint64) uint64 {
	j := i / sampleEvery
	if j == 0 {
		return l.upper
	}
	return l.upper + Field(b, l.samples+(j-1)*uint64(l.posWidth), int(l.posWidth))
}

// selectOne returns the place of one number rank, counted from 0, from place at on. It looks no
// further than end.
func selectOne(b []byte, at, rank, end uint64) uint64 {
	if at >= end {
		return end
	}
	word, base := load(b, at)<<(at&7), at&^7
	for {
		n := uint64(bits.OnesCount64(word))
		if rank < n {
			return base + selectBit(word, rank)
		}
		rank -= n
		if base += 64; base >= end {
			return end
		}
		word = load(b, base)
	}
}

// Decode writes all ids to out, which has room for Count, and checks that the list is as Append
// writes it: ids ascend, samples are right, and fewer than PaddingMost zeros follow.
func (l *List) Decode(b []byte, out []uint32) error {
	out = out[:l.Count]
	out[0] = l.first
	rest := out[1:]
	if len(rest) == 0 {
		return l.padding(b, l.low)
	}
	switch {
	case l.way < wayEF:
		return l.decodePacked(b, rest)
	case l.way == wayCells:
		if err := l.cells.decode(b, l.low, l.first, rest); err != nil {
			return err
		}
		return l.padding(b, l.low+l.cells.size(uint64(len(rest))))
	}
	at, width := l.low, uint64(l.width)
	mask := uint64(1)<<width - 1
	for i := range rest {
		rest[i] = uint32(load(b, at) & mask)
		at += width
	}
	if err := l.addHigh(b, rest); err != nil {
		return err
	}
	for i := uint64(sampleEvery); i < uint64(len(rest)); i += sampleEvery {
		h := uint64(rest[i]-l.first) >> width
		if l.from(b, i) != l.upper+h+i {
			return damage("has a sample of entry %d that is wrong", i)
		}
	}
	return nil
}

func (l *List) decodePacked(b []byte, rest []uint32) error {
	at, width, first := l.low, uint64(l.width), l.first
	mask := uint64(1)<<width - 1
	prev := first
	for i := range rest {
		v := first + uint32(load(b, at)&mask)
		if v < prev {
			return damage("has id %d after %d", v, prev)
		}
		rest[i], prev = v, v
		at += width
	}
	return l.padding(b, at)
}

// addHigh adds the high bits to low bits, which makes ids.
func (l *List) addHigh(b []byte, rest []uint32) error {
	width, prev, first := l.width, l.first, l.first
	base := l.upper &^ 7
	word := load(b, l.upper) << (l.upper & 7)
	// high is base-upper-i, so that a one at place p of the word means the high bits high+p.
	high := uint32(base - l.upper)
	for i := range rest {
		for word == 0 {
			base += 64
			if base >= l.end {
				return damage("has %d of %d ids", i+1, l.Count)
			}
			word = load(b, base)
			high += 64
		}
		v := first + (high+uint32(bits.TrailingZeros64(word)))<<width + rest[i]
		word &= word - 1
		high--
		if v < prev {
			return damage("has id %d after %d", v, prev)
		}
		rest[i], prev = v, v
	}
	last := uint64(prev-first)>>width + uint64(len(rest))
	return l.padding(b, l.upper+last)
}

// PaddingMost bounds the bits that may follow a list, so that lists can begin at multiples of it.
const PaddingMost = 4

// padding checks the bits from the end of the last id, at, to the end of the list.
func (l *List) padding(b []byte, at uint64) error {
	if at > l.end || l.end-at >= PaddingMost || Field(b, at, int(l.end-at)) != 0 {
		return damage("ends %d bits after its last id", int64(l.end)-int64(at))
	}
	return nil
}

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
