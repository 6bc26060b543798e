package rng

import "math/bits"

// Permutation is a keyed bijection of [0, n), computed, not stored: a Feistel network of four
// rounds over the smallest even number of bits that holds n, repeated while the result is n or more
// (Black and Rogaway, "Ciphers with Arbitrary Finite Domains"). At takes fewer than eight rounds on
// average.
type Permutation struct {
	n, key     uint64
	half, mask uint64
}

// NewPermutation returns the bijection of [0, n) that belongs to key.
func NewPermutation(n, key uint64) Permutation {
	half := uint64(1)
	if n > 1 {
		half = max(1, uint64(bits.Len64(n-1)+1)/2)
	}
	return Permutation{n: n, key: key, half: half, mask: 1<<half - 1}
}

// At returns the image of i, which must be below n.
func (p Permutation) At(i uint64) uint64 {
	for {
		l, r := i>>p.half, i&p.mask
		for round := range uint64(4) {
			l, r = r, l^(Sub(p.key+round, r)&p.mask)
		}
		if i = l<<p.half | r; i < p.n {
			return i
		}
	}
}

// Inverse returns the i for which At(i) is v.
func (p Permutation) Inverse(v uint64) uint64 {
	for {
		l, r := v>>p.half, v&p.mask
		for round := uint64(4); round > 0; round-- {
			l, r = r^(Sub(p.key+round-1, l)&p.mask), l
		}
		if v = l<<p.half | r; v < p.n {
			return v
		}
	}
}
