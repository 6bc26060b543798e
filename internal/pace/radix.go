package pace

import (
	"math/bits"
	"slices"
)

// flagLeast is the least number of keys that are sorted by digits; fewer are sorted by comparisons.
const flagLeast = 64

// RadixSort sorts numbers in place, while Sorter takes as much memory again. It sorts by digits of
// 8 bits, from the highest down (McIlroy, Bostic and McIlroy, "Engineering Radix Sort", 1993,
// American flag sort). Time: O(n) for each digit by which groups of more than flagLeast keys
// differ.
func RadixSort(keys []uint64) {
	if len(keys) > 0 {
		flagSort(keys, max(0, bits.Len64(slices.Max(keys))-1)/8*8)
	}
}

// flagSort sorts numbers that are equal above the digit at shift.
func flagSort(keys []uint64, shift int) {
	if len(keys) < flagLeast {
		slices.Sort(keys)
		return
	}
	var next, end [1 << 8]int // for each digit: where its next key goes, and where its keys end
	for _, k := range keys {
		end[uint8(k>>shift)]++
	}
	sum := 0
	for d, n := range end {
		next[d] = sum
		sum += n
		end[d] = sum
	}
	for d := range end {
		for at := next[d]; at < end[d]; at = next[d] {
			k := keys[at]
			for to := int(uint8(k >> shift)); to != d; to = int(uint8(k >> shift)) {
				k, keys[next[to]] = keys[next[to]], k
				next[to]++
			}
			keys[at] = k
			next[d]++
		}
	}
	begin := 0
	for _, e := range end {
		if shift > 0 && e-begin > 1 {
			flagSort(keys[begin:e], shift-8)
		}
		begin = e
	}
}
