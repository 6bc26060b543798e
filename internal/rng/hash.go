package rng

import "encoding/binary"

// mul2 is odd with 32 bits set, like mul0 and mul1; it keeps lengths apart.
const mul2 = 0x8ebc6af09c88c6e3

// Hash returns a seeded 64-bit hash of bytes, for tables on disk: its values never change. It does
// not resist adversaries, since whoever knows the seed can find collisions; so users compare keys
// too.
//
// It mixes 16 bytes per step. The last 1 to 16 bytes are read as two words that overlap, and the
// length is mixed in.
func Hash(seed uint64, b []byte) uint64 {
	n := uint64(len(b))
	h := mix(seed^mul0, mul1)
	for ; len(b) > 16; b = b[16:] {
		h = mix(binary.LittleEndian.Uint64(b)^mul1, binary.LittleEndian.Uint64(b[8:])^h)
	}
	lo, hi := tail(b)
	return mix(n^mul2, mix(lo^mul1, hi^h)^h)
}

// tail reads 0 to 16 bytes as two words, so that different tails of one length differ.
func tail(b []byte) (lo, hi uint64) {
	switch n := len(b); {
	case n >= 8:
		return binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[n-8:])
	case n >= 4:
		return uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[n-4:]))
	case n > 0:
		return uint64(b[0])<<16 | uint64(b[n/2])<<8 | uint64(b[n-1]), 0
	}
	return 0, 0
}
