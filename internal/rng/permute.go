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

const (
	// tabledHalf is the largest half, in bits, of a permutation for which a Filler has tables: four
	// of 8 KiB, for up to 2^24 numbers.
	tabledHalf = 12
	// walkedOnce is how many values Fill computes together.
	walkedOnce = 256
)

// Filler computes many values of a permutation of less than 2^32 numbers. It has tables of the
// rounds if these are small. Any goroutine may use it.
type Filler struct {
	p      Permutation
	rounds [4][]uint16 // what each round xors to one half, for each value of the other
}

// NewFiller returns the filler of a permutation.
func NewFiller(p Permutation) *Filler {
	f := &Filler{p: p}
	if p.half > tabledHalf {
		return f
	}
	for round := range f.rounds {
		f.rounds[round] = make([]uint16, p.mask+1)
		for r := range f.rounds[round] {
			f.rounds[round][r] = uint16(Sub(p.key+uint64(round), uint64(r)) & p.mask)
		}
	}
	return f
}

// Fill writes the values of At for from, from+1, … to dst.
func (f *Filler) Fill(dst []uint32, from uint64) {
	if f.rounds[0] == nil {
		for i := range dst {
			dst[i] = uint32(f.p.At(from + uint64(i)))
		}
		return
	}
	for len(dst) > walkedOnce {
		f.walk(dst[:walkedOnce], uint32(from))
		dst, from = dst[walkedOnce:], from+walkedOnce
	}
	f.walk(dst, uint32(from))
}

// walk does what Fill does, for at most walkedOnce values. It takes one step of every walk after
// another, so that none waits for another, and keeps the walks that are not finished together
// without a branch.
func (f *Filler) walk(dst []uint32, from uint32) {
	var values [walkedOnce]uint32
	var places [walkedOnce]uint8
	for i := range dst {
		values[i], places[i] = from+uint32(i), uint8(i)
	}
	first, second, third, fourth := f.rounds[0], f.rounds[1], f.rounds[2], f.rounds[3]
	half, mask, n := f.p.half&15, uint32(f.p.mask), uint32(f.p.n)
	for walking := len(dst); walking > 0; {
		kept := 0
		for k, v := range values[:walking] {
			l, r := v>>half, v&mask
			l ^= uint32(first[r])
			r ^= uint32(second[l])
			l ^= uint32(third[r])
			r ^= uint32(fourth[l])
			v, place := l<<half|r, places[k]
			dst[place] = v
			values[kept], places[kept] = v, place
			_, below := bits.Sub32(v, n, 0)
			kept += 1 - int(below)
		}
		walking = kept
	}
}
