package extsort

import "math/bits"

// record is a run of words that sorts by its first word, then by the second, ….
type record interface {
	[1]uint64 | [2]uint64 | [3]uint64 | [4]uint64 | [5]uint64
}

// digitBits is the width of a radix digit: 2048 counters fit in the L1 cache, and two digits
// cover the node ids of a graph of four million nodes.
const digitBits = 11

// radixSort sorts a by its first key words and returns the sorted records, which are in a or in
// scratch. Bits that are equal in all records cost nothing. Time: one pass per 11 bits that vary.
func radixSort[R record](a, scratch []R, key int) []R {
	if isSorted(a, key) {
		return a
	}
	scratch = scratch[:len(a)]
	for word := key - 1; word >= 0; word-- {
		for vary := varying(a, word); vary != 0; {
			shift := bits.TrailingZeros64(vary)
			radixPass(a, scratch, word, shift)
			a, scratch = scratch, a
			vary &^= (1<<digitBits - 1) << shift
		}
	}
	return a
}

// isSorted says whether records come in order already, as rows of arrays do.
func isSorted[R record](a []R, key int) bool {
	for i := 1; i < len(a); i++ {
		for k := range key {
			if a[i-1][k] != a[i][k] {
				if a[i-1][k] > a[i][k] {
					return false
				}
				break
			}
		}
	}
	return true
}

// varying has a one for every bit of a word that differs between records.
func varying[R record](a []R, word int) uint64 {
	any, all := uint64(0), ^uint64(0)
	for i := range a {
		w := a[i][word]
		any |= w
		all &= w
	}
	return any &^ all
}

func radixPass[R record](a, out []R, word, shift int) {
	var at [1 << digitBits]uint32
	for i := range a {
		at[a[i][word]>>shift&(1<<digitBits-1)]++
	}
	sum := uint32(0)
	for d, n := range at {
		at[d] = sum
		sum += n
	}
	for i := range a {
		d := a[i][word] >> shift & (1<<digitBits - 1)
		out[at[d]] = a[i]
		at[d]++
	}
}
