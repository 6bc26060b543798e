package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// Sorted lists of uint32 are kept as StreamVByte (Lemire, Kurz, Rupp) of their deltas: the first
// value, then the difference of each to the one before. First come control bytes, one for four
// values, the first in the low bits: two bits that tell how many bytes a delta takes, less one.
// Then come the deltas, little-endian, each in as few bytes as it needs:
//
//	list 5 9 300 300 301      0          1          2     3     4           6     7     8
//	deltas 5 4 291 0 1        +----------+----------+-----+-----+-----------+-----+-----+
//	                          | 00010000 | 00000000 | 5   | 4   | 35 1      | 0   | 1   |
//	                          +----------+----------+-----+-----+-----------+-----+-----+
//
// Control bits without a value are zero. The number of values is not part of it.

// ErrDeltas is wrapped if bytes are not the deltas of the expected number of values.
var ErrDeltas = errors.New("codec: damaged deltas")

// groupTables are looked up by control byte; the assembly knows their layout.
type groupTables struct { // for each byte of four values, the place of its data byte; 128 gives 0
	shuffle [256][16]uint8 // of 16 bytes of data, which go to each byte of four values; 128 gives 0
	bytes   [256]uint8     // number of data bytes
}

var tables = newGroupTables()

func newGroupTables() *groupTables {
	t := &groupTables{}
	for c := range t.bytes {
		for k := range 4 {
			n := uint8(c>>(2*k))&3 + 1
			for j := range uint8(4) {
				t.shuffle[c][4*k+int(j)] = 128
				if j < n {
					t.shuffle[c][4*k+int(j)] = t.bytes[c] + j
				}
			}
			t.bytes[c] += n
		}
	}
	return t
}

// deltaBytes returns how many bytes a delta takes, minus one.
func deltaBytes(d uint32) int { return (bits.Len32(d|1) - 1) >> 3 }

// DeltasData returns the bytes that the deltas of a part of a list take, without control bytes.
// prev is the value before the part.
func DeltasData(prev uint32, part []uint32) int {
	size := len(part)
	for _, v := range part {
		size += deltaBytes(v - prev)
		prev = v
	}
	return size
}

// AppendDeltas encodes a list. Any list comes back as it was, but only sorted ones get smaller.
func AppendDeltas(b []byte, list []uint32) []byte {
	at := len(b)
	for range (len(list) + 3) / 4 {
		b = append(b, 0)
	}
	prev := uint32(0)
	for i, v := range list {
		d := v - prev
		n := deltaBytes(d)
		b[at+i/4] |= byte(n << (i % 4 * 2))
		for range n + 1 {
			b = append(b, byte(d))
			d >>= 8
		}
		prev = v
	}
	return b
}

// DecodeDeltas decodes src, which must be the whole encoding of len(dst) values. Bytes beyond src
// do not change the result, but those up to its capacity may be read: with 16 of them short lists
// are decoded faster. Damage that does not change the length gives other values; a checksum must
// find it.
func DecodeDeltas(dst []uint32, src []byte) error {
	return decodeDeltas(dst, src, fastGroups)
}

// groupDecoder decodes groups of four values from the front, as long as it can fill whole groups of
// dst and read 16 bytes of data. It returns how many groups it decoded, and their bytes of data.
type groupDecoder func(dst []uint32, ctrl, data []byte, t *uint8) (groups, used int)

func decodeDeltas(dst []uint32, src []byte, fast groupDecoder) error {
	n := len(dst)
	nc := (n + 3) / 4
	if nc > len(src) {
		return fmt.Errorf("%w: %d bytes for %d values", ErrDeltas, len(src), n)
	}
	ctrl, data := src[:nc:nc], src[nc:]
	done, used := 0, 0
	if fast != nil && n >= 4 {
		done, used = fast(dst, ctrl, data[:cap(data)], &tables.shuffle[0][0])
	}
	if used > len(data) {
		return fmt.Errorf("%w: %d bytes for %d values are too few", ErrDeltas, len(src), n)
	}
	rest, err := decodePlain(dst, 4*done, ctrl, data[used:])
	if err == nil && rest != 0 {
		err = fmt.Errorf("%w: %d bytes for %d values, %d too many", ErrDeltas, len(src), n, rest)
	}
	return err
}

// decodePlain decodes the values from number i on, and returns how many bytes are left. It
// specifies what the fast decoders do.
func decodePlain(dst []uint32, i int, ctrl, data []byte) (rest int, err error) {
	prev := uint32(0)
	if i > 0 {
		prev = dst[i-1]
	}
	for ; i < len(dst); i++ {
		n := int(ctrl[i/4]>>(i%4*2))&3 + 1
		var d uint32
		switch {
		case len(data) >= 4:
			d = binary.LittleEndian.Uint32(data) & (1<<(8*n) - 1)
		case len(data) < n:
			return 0, fmt.Errorf("%w: it ends before value %d of %d", ErrDeltas, i, len(dst))
		default:
			for k := range n {
				d |= uint32(data[k]) << (8 * k)
			}
		}
		data = data[n:]
		prev += d
		dst[i] = prev
	}
	if used := len(dst) % 4; used != 0 && ctrl[len(ctrl)-1]>>(2*used) != 0 {
		return 0, fmt.Errorf("%w: control bits past the last of %d values", ErrDeltas, len(dst))
	}
	return len(data), nil
}

// maxGroup is how many values the fast kernel compares together.
const maxGroup = 32

// Max returns the largest of the values, or 0 if there are none. Readers of ids call it once per
// block: an id that is not below the number of nodes is damage, whatever the checksum says.
func Max(values []uint32) (most uint32) {
	if groups := len(values) / maxGroup; groups > 0 && fastMax != nil {
		most = fastMax(groups, &values[0])
		values = values[groups*maxGroup:]
	}
	return max(most, maxPlain(values))
}

// maxPlain does what Max does, in plain Go.
func maxPlain(values []uint32) (most uint32) {
	for _, v := range values {
		most = max(most, v)
	}
	return most
}
