package columnfile

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"gdb/internal/mem"
)

// Numbers are packed: a byte with the number of bits of a number, the least one, and the difference
// of each to it in these bits, from the lowest of a byte on:
//
//	0      1           9
//	+------+-----------+-------------------------+
//	| bits | least i64 | differences, bits each  |
//	+------+-----------+-------------------------+
//
// Bits are 0 to 56, so that a difference is in the 8 bytes that begin with its first one, or 64.
const (
	packedHead = 9
	packedMost = 56
	wholeBits  = 64
)

// packed are numbers in bits.
type packed struct {
	least uint64
	bits  int
	data  []byte
}

// packedBits returns in how many bits numbers are packed whose largest difference to the least one
// this is.
func packedBits(most uint64) int {
	if n := bits.Len64(most); n <= packedMost {
		return n
	}
	return wholeBits
}

// packedBytes returns the length of n packed numbers, without their head.
func packedBytes(n, bits int) int { return (n*bits + 7) / 8 }

// appendPacked appends numbers.
func appendPacked(b []byte, v []int64) []byte {
	least, most := int64(0), int64(0)
	if len(v) > 0 {
		least, most = slices.Min(v), slices.Max(v)
	}
	width := packedBits(uint64(most) - uint64(least))
	if width == wholeBits {
		least = 0
	}
	b = binary.LittleEndian.AppendUint64(append(b, byte(width)), uint64(least))
	at, n := len(b), packedBytes(len(v), width)
	b = slices.Grow(b, n+8)[:at+n+8]
	if width == wholeBits {
		copy(b[at:], mem.BytesOf(v))
	} else {
		pack(b[at:], v, uint64(least), width)
	}
	return b[:at+n]
}

// pack writes differences to least in up to packedMost bits each. It writes up to 8 bytes beyond
// them.
func pack(data []byte, v []int64, least uint64, width int) {
	var word uint64 // the bits that are not written yet, fewer than 8 after each number
	used := 0
	for _, x := range v {
		word |= (uint64(x) - least) << used
		used += width
		binary.LittleEndian.PutUint64(data, word)
		data = data[used>>3:]
		word >>= used &^ 7
		used &= 7
	}
	binary.LittleEndian.PutUint64(data, word)
}

// parsePacked reads n packed numbers from the front of b, and returns the rest.
func parsePacked(b []byte, n int) (p packed, rest []byte, err error) {
	if len(b) < packedHead {
		return p, nil, fmt.Errorf("%d bytes are too few for packed numbers", len(b))
	}
	p.bits, p.least = int(b[0]), binary.LittleEndian.Uint64(b[1:])
	if p.bits > packedMost && p.bits != wholeBits {
		return p, nil, fmt.Errorf("numbers of %d bits", p.bits)
	}
	b = b[packedHead:]
	size := packedBytes(n, p.bits)
	if len(b) < size {
		return p, nil, fmt.Errorf("%d bytes are too few for %d numbers of %d bits", len(b), n,
			p.bits)
	}
	p.data = b[:size:size]
	return p, b[size:], nil
}

// at returns number i.
func (p *packed) at(i int) int64 {
	pos := i * p.bits
	var d uint64
	if k := pos >> 3; k+8 <= len(p.data) {
		d = binary.LittleEndian.Uint64(p.data[k:])
	} else {
		var last [8]byte
		copy(last[:], p.data[min(k, len(p.data)):])
		d = binary.LittleEndian.Uint64(last[:])
	}
	return int64(p.least + d>>(pos&7)&(1<<p.bits-1))
}

// appendTo appends numbers from … to-1.
func (p *packed) appendTo(out []int64, from, to int) []int64 {
	at := len(out)
	out = slices.Grow(out, to-from)[:at+to-from]
	if p.bits == wholeBits {
		copy(mem.BytesOf(out[at:]), p.data[8*from:8*to])
		return out
	}
	i, fast := from, to // numbers whose 8 bytes are there
	if p.bits > 0 {
		fast = min(to, 8*(len(p.data)-8)/p.bits+1)
	}
	if len(p.data) >= 8 && from < fast {
		mask, least := uint64(1)<<p.bits-1, p.least
		pos, width := uint(from*p.bits), uint(p.bits)
		for k := range out[at : at+fast-from] {
			d := binary.LittleEndian.Uint64(p.data[pos>>3:]) >> (pos & 7)
			out[at+k] = int64(least + d&mask)
			pos += width
		}
		i = fast
	}
	for ; i < to; i++ {
		out[at+i-from] = p.at(i)
	}
	return out
}
