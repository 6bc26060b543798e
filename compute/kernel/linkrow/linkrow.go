// Package linkrow has what steps of link prediction do with a few rows at a time, each in one pass
// where kernels of single operations take several: rows are short, and most of the time of such a
// kernel is that of calling it.
package linkrow

import (
	"math"
	"unsafe"

	"gdb/compute/kernel"
)

// wide says that the processor has AVX-512, and that it is in use.
var wide = isWide()

func isWide() bool {
	level, _ := kernel.Chosen()
	return hasAssembly && level == kernel.AVX512
}

// Prefetch asks for rows of a table of so many columns before they are read, all at once: rows in
// no order are waited for one after the other otherwise.
func Prefetch(table []float32, cols int, rows []uint32) {
	if len(rows) == 0 || cols == 0 {
		return
	}
	prefetchRows(unsafe.SliceData(table), unsafe.SliceData(rows), len(rows), uintptr(cols)*4)
}

// Fast says whether what is here is faster than a kernel for each operation.
func Fast() bool { return wide }

// ProductGrad is the gradient of a query q = x∘r that is compared with an answer, by dq, its
// gradient, and g, the gradient of the score of the answer: dx is dq∘r and dAnswer g·q, or these
// are added if add is set, and dq∘x is added to dr. None of the rows overlap, and all have the
// length of q.
//
//lint:parameters called for each triple, with all in registers
func ProductGrad(dx, dAnswer, dr, dq, q, x, r []float32, g float32, add bool) {
	n := len(q)
	dx, dAnswer, dr, dq, x, r = dx[:n], dAnswer[:n], dr[:n], dq[:n], x[:n], r[:n]
	if !wide || n == 0 {
		refProductGrad(dx, dAnswer, dr, dq, q, x, r, g, add)
		return
	}
	mask := uint64(0)
	if add {
		mask = 0xffff
	}
	productGrad(&dx[0], &dAnswer[0], &dr[0], &dq[0], &q[0], &x[0], &r[0], g, mask, n)
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

// refAdagrad is the specification of a step of Adagrad along g, to which the gradient of cube/3
// times the sum of |w|³ is added first.
func refAdagrad(w, s, g []float32, rate, eps, cube float32) {
	for i, v := range g {
		v += cube * float32(math.Abs(float64(w[i]))) * w[i]
		s[i] += v * v
		w[i] -= rate * v / (float32(math.Sqrt(float64(s[i]))) + eps)
	}
}
