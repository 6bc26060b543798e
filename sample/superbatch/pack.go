package superbatch

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"unsafe"

	"gdb/internal/codec"
	"gdb/internal/mem"
)

// Numbers are stored at the bit width of the largest of an array. Node ids and indexes are spread
// evenly below a known bound, so that no general compression does better, and this one runs at
// about a billion numbers a second.

// appendPacked appends values at width bits each, the lowest bits first.
func appendPacked(dst []byte, values []uint32, width int) []byte {
	acc, have := uint64(0), 0
	for _, v := range values {
		acc |= uint64(v) << have
		if have += width; have >= 32 {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(acc))
			acc, have = acc>>32, have-32
		}
	}
	for ; have > 0; have -= 8 {
		dst = append(dst, byte(acc))
		acc >>= 8
	}
	return dst
}

// packedBytes returns the size in bytes of n packed numbers.
func packedBytes(n, width int) int { return (n*width + 7) / 8 }

// unpack fills dst with numbers from src, which has packedBytes(len(dst), width) bytes.
func unpack(dst []uint32, src []byte, width int) {
	mask, bit, i := uint64(1)<<width-1, 0, 0
	for ; i < len(dst) && bit>>3+8 <= len(src); i++ {
		dst[i] = uint32(binary.LittleEndian.Uint64(src[bit>>3:]) >> (bit & 7) & mask)
		bit += width
	}
	for ; i < len(dst); i++ {
		var tail [8]byte
		copy(tail[:], src[bit>>3:])
		dst[i] = uint32(binary.LittleEndian.Uint64(tail[:]) >> (bit & 7) & mask)
		bit += width
	}
}

// putArray appends the number of values, their width, and the values packed.
func putArray(e *codec.Enc, values []uint32) {
	all := uint32(0)
	for _, v := range values {
		all |= v
	}
	width := max(1, bits.Len32(all)) // not 0: an array is no longer than its bytes allow
	e.U32(uint32(len(values)))
	e.U8(uint8(width))
	e.B = appendPacked(e.B, values, width)
}

// takeArray reads what putArray wrote to the memory of dst, or to new memory if dst is too small.
// It returns an error if there are more than most values.
func takeArray(d *codec.Dec, dst []uint32, most int) ([]uint32, error) {
	n, width := int(d.U32()), int(d.U8())
	if err := d.Err(); err != nil {
		return dst[:0], err
	}
	if n > most || width < 1 || width > 32 {
		return dst[:0], fmt.Errorf("an array of %d numbers of %d bits, at most %d of 1 to 32", n,
			width, most)
	}
	src := d.Bytes(packedBytes(n, width))
	if err := d.Err(); err != nil {
		return dst[:0], err
	}
	if n > cap(dst) {
		dst = make([]uint32, n, n+n/8)
	}
	dst = dst[:n]
	unpack(dst, src, width)
	return dst, nil
}

// push appends v to s, and adds the memory by which s grows to l.
func push[T any](l *mem.Account, s []T, v T) ([]T, error) {
	if len(s) < cap(s) {
		return append(s, v), nil
	}
	grown := max(64, cap(s)+cap(s)/2)
	if err := l.Add(int64(grown-cap(s)) * int64(unsafe.Sizeof(v))); err != nil {
		return s, err
	}
	return append(append(make([]T, 0, grown), s...), v), nil
}

// carve cuts the next n numbers off the front of an arena's bytes.
func carve[T mem.Scalar](b *[]byte, n int) []T {
	var zero T
	size := n * int(unsafe.Sizeof(zero))
	part := (*b)[:size:size]
	*b = (*b)[size:]
	if n == 0 {
		return nil
	}
	return mem.View[T](part)
}
