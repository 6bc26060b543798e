package extsort

import (
	"math/bits"
	"sort"
)

// MergeTwo merges two sorted slices of words to out, which has as many as both. Which word is next
// cannot be predicted, so no branch depends on it, and each step waits for the one before: steps of
// both halves of out alternate, so that one is computed while the other waits.
func MergeTwo(out, x, y []uint64) {
	half := len(out) / 2
	i := rank(x, y, half)
	o1, x1, y1 := out[:half], x[:i], y[:half-i]
	o2, x2, y2 := out[half:], x[i:], y[half-i:]
	for {
		steps := min(len(x1), len(y1), len(x2), len(y2)) // none of them ends before
		if steps < stepsLeast {
			break
		}
		i1, i2 := uint64(0), uint64(0)
		for k := range uint64(steps) {
			p, q, r, s := x1[i1], y1[k-i1], x2[i2], y2[k-i2]
			_, second1 := bits.Sub64(q, p, 0) // 1 if q is less
			_, second2 := bits.Sub64(s, r, 0)
			o1[k], o2[k] = p^(p^q)&-second1, r^(r^s)&-second2
			i1, i2 = i1+1-second1, i2+1-second2
		}
		n := uint64(steps)
		o1, x1, y1 = o1[n:], x1[i1:], y1[n-i1:]
		o2, x2, y2 = o2[n:], x2[i2:], y2[n-i2:]
	}
	mergeTwoPlain(o1, x1, y1)
	mergeTwoPlain(o2, x2, y2)
}

// stepsLeast is how many steps MergeTwo takes at a time at least.
const stepsLeast = 16

// mergeTwoPlain does what MergeTwo does, one step after the other.
func mergeTwoPlain(out, x, y []uint64) {
	i, j := uint64(0), uint64(0)
	for i < uint64(len(x)) && j < uint64(len(y)) {
		p, q := x[i], y[j]
		_, second := bits.Sub64(q, p, 0)
		out[i+j] = p ^ (p^q)&-second
		i, j = i+1-second, j+second
	}
	copy(out[i+j:], x[i:])
	copy(out[int(i)+len(x[i:])+int(j):], y[j:])
}

// rank returns how many of the first n words of x and y together are of x.
func rank(x, y []uint64, n int) int {
	least := max(0, n-len(y))
	return least + sort.Search(min(n, len(x))-least, func(k int) bool {
		i := least + k // too few while the next of x is below the last taken of y
		return x[i] >= y[n-i-1]
	})
}
