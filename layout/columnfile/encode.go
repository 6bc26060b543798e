package columnfile

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"gdb/internal/mem"

	"github.com/klauspost/compress/zstd"
)

// A block holds rows:
//
//	0        4      8        16                   20       21      22      24
//	+--------+------+--------+--------------------+--------+-------+-------+---------+
//	| crc32c | rows | number | bytes of payload   | coding | flags | zeros | payload |
//	+--------+------+--------+--------------------+--------+-------+-------+---------+
//
// The checksum covers the kind of the file, the store, the path of the column, and everything after
// itself. The payload is, before it is compressed (flag 2), a bit for
// each row, in whole bytes, if some rows are null (flag 1; 0 is null), and then
//
//	int64, bool, date, timestamp   packed numbers; 0 stands for a null row
//	float64       coding plain:    8 bytes each
//	              coding decimal:  a byte d, and packed numbers k below 2^53: k/10^d is the value
//	              coding shared:   a byte d: the feature times 10^d, as the nearest integer,
//	                               divided by 10^d; as it is for 255
//	string        coding plain:    packed lengths, and the strings
//	              coding dict:     packed numbers of strings of the dictionary
//	sparse                         packed numbers of entries, packed indices, and the values as
//	                               f32, if some are not 1 (flag 4)
const (
	blockHead = 24
	flagsAt   = 21

	codingPlain   = 0
	codingDecimal = 1
	codingDict    = 2
	codingShared  = 3

	flagNulls  = 1
	flagZstd   = 2
	flagValues = 4

	// rawMost bounds the payload of a block, in bytes.
	rawMost = 1 << 30
	// compressShare says when a block is stored compressed: if that saves one part in
	// compressShare.
	compressShare = 8
	// The dictionary ends before it has more strings or bytes.
	dictMost      = 1 << 16
	dictBytesMost = 1 << 20
	// zipAgain is how many blocks are not tried to be compressed after one for which it did not
	// pay.
	zipAgain = 15
)

// encoder encodes blocks. It holds the dictionary.
type encoder struct {
	*column
	zip     *zstd.Encoder
	pause   int // how many blocks are not tried to be compressed
	block   []byte
	zipped  []byte
	numbers []int64
	dict    map[string]uint32 // nil if strings are not looked up in it
	strings Strings           // of the dictionary, by number
}

// newEncoder returns an encoder of blocks of a column.
func newEncoder(c *column) (*encoder, error) {
	zip, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(zipWindow), zstd.WithLowerEncoderMem(true))
	return &encoder{column: c, zip: zip}, err
}

// zipWindow is the window of compression, in bytes: as much as most blocks have.
const zipWindow = 64 << 10

// encode encodes rows as block n, which is valid until the next call, and returns the number of
// bytes of its payload before it was compressed.
func (e *encoder) encode(n uint64, v *Values) (block []byte, raw int, err error) {
	e.block = append(e.block[:0], make([]byte, blockHead)...)
	flags, coding := e.nulls(v), byte(codingPlain)
	compress := false
	switch e.class {
	case ints:
		e.numbers = append(e.numbers[:0], v.Ints...)
		e.fill(v)
		e.block = appendPacked(e.block, e.numbers)
	case floats:
		coding = e.floats(v)
		compress = coding == codingPlain
	case texts:
		if coding = e.texts(v); coding == codingPlain {
			compress = true
		}
	case lists:
		flags |= e.lists(&v.Sparse)
		compress = true
	}
	if raw = len(e.block) - blockHead; raw > rawMost {
		return nil, 0, fmt.Errorf("a block of %d rows takes %s, more than %s", v.Rows,
			mem.FormatSize(int64(raw)), mem.FormatSize(rawMost))
	}
	if block = e.block; compress && e.compress() {
		block, flags = e.zipped, flags|flagZstd
	}
	binary.LittleEndian.PutUint32(block[4:], uint32(v.Rows))
	binary.LittleEndian.PutUint32(block[16:], uint32(raw))
	block[flagsAt-1], block[flagsAt] = coding, flags
	e.seal(n, block)
	return block, raw, nil
}

// compress compresses the payload of the block to zipped, and reports whether that pays.
func (e *encoder) compress() bool {
	if e.pause--; e.pause >= 0 {
		return false
	}
	head, payload := e.block[:blockHead], e.block[blockHead:]
	e.zipped = e.zip.EncodeAll(payload, append(e.zipped[:0], head...))
	if len(e.zipped)-blockHead < len(payload)-len(payload)/compressShare {
		return true
	}
	e.pause = zipAgain
	return false
}

// nulls appends which rows are not null, if some are.
func (e *encoder) nulls(v *Values) (flags byte) {
	nulls := countNulls(v)
	if nulls == 0 {
		return 0
	}
	at := len(e.block)
	for _, w := range v.Valid[:(v.Rows+63)/64] {
		e.block = binary.LittleEndian.AppendUint64(e.block, w)
	}
	e.block = e.block[:at+(v.Rows+7)/8]
	if r := v.Rows % 8; r > 0 {
		e.block[len(e.block)-1] &= 1<<r - 1
	}
	return flagNulls
}

// countNulls counts the rows that are null.
func countNulls(v *Values) (n int) {
	if len(v.Valid) == 0 {
		return 0
	}
	n = v.Rows
	for i, w := range v.Valid[:(v.Rows+63)/64] {
		if left := v.Rows - 64*i; left < 64 {
			w &= 1<<left - 1
		}
		n -= bits.OnesCount64(w)
	}
	return n
}

// fill gives null rows the number of the row before, so that they widen no range, and the first
// ones the first number of all.
func (e *encoder) fill(v *Values) {
	if len(v.Valid) == 0 {
		return
	}
	last := int64(0)
	for i := range v.Rows {
		if !v.Null(i) {
			last = e.numbers[i]
			break
		}
	}
	for i := range v.Rows {
		if v.Null(i) {
			e.numbers[i] = last
		}
		last = e.numbers[i]
	}
}

// decimalMost bounds the numbers that stand for floats: all integers below are floats.
const decimalMost = 1 << 53

// powers are the powers of ten that floats are tried to be multiplied by to make integers.
var powers = [...]float64{1, 10, 100, 1e3, 1e4, 1e5, 1e6}

// decimal returns the integer that x times a power of ten is, if x is its quotient, bit by bit. The
// quotient of a decimal number's digits and a power of ten is the float that is read from the
// number, since division rounds to the nearest.
func decimal(x float64, digits int) (k int64, ok bool) {
	y := math.RoundToEven(x * powers[digits])
	if !(y > -decimalMost && y < decimalMost) || y/powers[digits] != x ||
		x == 0 && math.Signbit(x) {
		return 0, false
	}
	return int64(y), true
}

// floats appends floats: as integers, if all are such divided by the same power of ten.
func (e *encoder) floats(v *Values) (coding byte) {
	if e.Shared.Path != "" && countNulls(v) == 0 {
		if how, ok := shared(v); ok {
			e.block = append(e.block, how)
			return codingShared
		}
	}
	if digits := e.decimals(v); digits >= 0 {
		e.fill(v)
		e.block = appendPacked(append(e.block, byte(digits)), e.numbers)
		return codingDecimal
	}
	for i, x := range v.Floats {
		if v.Null(i) {
			x = 0
		}
		e.block = binary.LittleEndian.AppendUint64(e.block, math.Float64bits(x))
	}
	return codingPlain
}

// decimals sets the numbers to floats times a power of ten, and returns which one, or -1 if some
// need a larger one than there is.
func (e *encoder) decimals(v *Values) (digits int) {
	e.numbers = e.numbers[:0]
	for i := 0; i < v.Rows; i++ {
		k, ok := int64(0), v.Null(i)
		if !ok {
			k, ok = decimal(v.Floats[i], digits)
		}
		switch {
		case ok:
			e.numbers = append(e.numbers, k)
		case digits == len(powers)-1:
			return -1
		default: // again, from the first one on
			digits, i, e.numbers = digits+1, -1, e.numbers[:0]
		}
	}
	return digits
}

// texts appends strings.
func (e *encoder) texts(v *Values) (coding byte) {
	if e.codes(v) {
		e.fill(v)
		e.block = appendPacked(e.block, e.numbers)
		return codingDict
	}
	e.plainTexts(&v.Strings)
	return codingPlain
}

// plainTexts appends the lengths of strings and their bytes.
func (e *encoder) plainTexts(s *Strings) {
	e.lengths(s.Off)
	e.block = append(e.block, s.Bytes...)
}

// lengths appends the lengths between ends.
func (e *encoder) lengths(off []uint32) {
	e.numbers = e.numbers[:0]
	for i := 1; i < len(off); i++ {
		e.numbers = append(e.numbers, int64(off[i]-off[i-1]))
	}
	e.block = appendPacked(e.block, e.numbers)
}

// codes looks the strings of a block up in the dictionary, and adds those that are new. It returns
// false if it has no room for them.
func (e *encoder) codes(v *Values) bool {
	if e.dict == nil {
		return false
	}
	e.numbers = e.numbers[:0]
	for i := range v.Rows {
		if v.Null(i) {
			e.numbers = append(e.numbers, 0)
			continue
		}
		s := v.Strings.At(i)
		code, known := e.dict[string(s)]
		if !known {
			if len(e.dict) == dictMost || len(e.strings.Bytes)+len(s) > dictBytesMost {
				return false
			}
			code = uint32(len(e.dict))
			e.dict[string(s)] = code
			e.strings.Add(s)
		}
		e.numbers = append(e.numbers, int64(code))
	}
	return true
}

// lists appends sparse vectors.
func (e *encoder) lists(l *Lists) (flags byte) {
	e.lengths(l.Off)
	e.numbers = e.numbers[:0]
	for _, k := range l.Index {
		e.numbers = append(e.numbers, int64(k))
	}
	e.block = appendPacked(e.block, e.numbers)
	if allOnes(l.Value) {
		return 0
	}
	e.block = append(e.block, mem.BytesOf(l.Value)...)
	return flagValues
}

// allOnes reports whether all values are 1.
func allOnes(v []float32) bool {
	for _, x := range v {
		if x != 1 {
			return false
		}
	}
	return true
}
