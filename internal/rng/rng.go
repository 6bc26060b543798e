// Package rng derives random numbers from counters: every random choice of gdb depends on what it
// is for (seed, epoch, batch, hop, node, …), never on how many choices came before. So batches are
// equal whatever the cache, the I/O path or the number of workers, and a resumed run continues as
// if it had not stopped.
package rng

import (
	"encoding/binary"
	"math/bits"
)

const (
	mul0 = 0xa0761d6478bd642f
	mul1 = 0xe7037ed1a0b428db
)

// mix multiplies to 128 bits and folds: the wyhash mixer.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// Key folds the parts of a counter to one 64-bit key. Different part lists give independent keys.
func Key(parts ...uint64) uint64 {
	k := uint64(len(parts)) * mul0
	for _, p := range parts {
		k = mix(k^p^mul0, mul1^(k+p))
		k = mix(k^mul1, mul0)
	}
	return k
}

// Sub derives the key of one part below a key: cheaper than Key where the prefix is shared, as for
// the nodes of a hop. It mixes twice: after one multiplication the low bits depend on few others.
func Sub(key, part uint64) uint64 { return mix(mix(key^part*mul1, mul0^part)^key, mul1) }

// Unit returns a draw of (0, 1) from 64 random bits: an odd multiple of 2^-53, from which 1 can be
// subtracted without rounding.
func Unit(x uint64) float64 { return float64(x>>12<<1|1) / (1 << 53) }

// Stream is a short stream of draws derived from one key. The zero value is the stream of key 0. It
// is not safe for concurrent use, and is meant to live on the stack.
type Stream struct{ state uint64 }

// NewStream returns the stream of a key.
func NewStream(key uint64) Stream { return Stream{key} }

// Uint64 returns the next 64 bits.
func (s *Stream) Uint64() uint64 {
	s.state += mul0
	return mix(s.state, s.state^mul1)
}

// Below returns a uniform draw of [0, n) by multiplication and rejection, without bias; n > 0.
func (s *Stream) Below(n uint64) uint64 {
	hi, lo := bits.Mul64(s.Uint64(), n)
	if lo < n {
		for least := -n % n; lo < least; {
			hi, lo = bits.Mul64(s.Uint64(), n)
		}
	}
	return hi
}

// Float64 returns a uniform draw of [0, 1) with 53 bits.
func (s *Stream) Float64() float64 { return float64(s.Uint64()>>11) / (1 << 53) }

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
