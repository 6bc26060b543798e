package kernel

import (
	"unsafe"
)

// The functions of this file and of pairs.go and adagradrows.go do several operations of a step of
// link prediction in one pass over a few rows: rows are short, and most of the time of a kernel for
// one operation would be spent on calling it.

// FusesLinks reports whether these functions are faster than a kernel for each operation.
func FusesLinks() bool { return level().links != nil }

// Prefetch asks memory for rows of cols values of a table before they are read, for all at once:
// rows in no order would be waited for one after the other otherwise.
func Prefetch(table []float32, cols int, rows []uint32) {
	prefetch := level().prefetch
	if prefetch == nil || len(rows) == 0 || cols == 0 {
		return
	}
	prefetch(unsafe.SliceData(table), unsafe.SliceData(rows), len(rows), uintptr(cols)*4)
}

// ProductGrad computes the gradient of a query q = x∘r that is compared with an answer, from dq,
// the gradient of q, and g, the gradient of the score of the answer: dx is dq∘r and dAnswer g·q, or
// these are added if add is set, and dq∘x is added to dr. None of the rows overlap, and all have
// the length of q.
//
//lint:parameters called for each triple, with all in registers
func ProductGrad(dx, dAnswer, dr, dq, q, x, r []float32, g float32, add bool) {
	n, links := len(q), level().links
	dx, dAnswer, dr, dq, x, r = dx[:n], dAnswer[:n], dr[:n], dq[:n], x[:n], r[:n]
	if links == nil || n == 0 {
		refProductGrad(dx, dAnswer, dr, dq, q, x, r, g, add)
		return
	}
	mask := uint64(0)
	if add {
		mask = 0xffff
	}
	links.productGrad(&dx[0], &dAnswer[0], &dr[0], &dq[0], &q[0], &x[0], &r[0], g, mask, n)
}

//lint:parameters as many as the assembly takes that it specifies
func refProductGrad(dx, dAnswer, dr, dq, q, x, r []float32, g float32, add bool) {
	if !add {
		clear(dx)
		clear(dAnswer)
	}
	for i, v := range dq {
		dx[i] += v * r[i]
		dAnswer[i] += g * q[i]
		dr[i] += v * x[i]
	}
}
