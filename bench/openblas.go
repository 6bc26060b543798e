//go:build openblas

package bench

/*
#cgo LDFLAGS: -lopenblas
#include <cblas.h>
*/
import "C"

import "time"

// openBLAS is the system's OpenBLAS. Its workers busy-wait for some 2^26 cycles after a product.
var openBLAS = &blasLibrary{
	name:    "OpenBLAS " + C.GoString(C.openblas_get_config()),
	threads: func(n int) { C.openblas_set_num_threads(C.int(n)) },
	rest:    100 * time.Millisecond,
	run: func(p product) {
		a, b, c := (*C.float)(&p.a[0]), (*C.float)(&p.b[0]), (*C.float)(&p.c[0])
		m, k, n := C.blasint(p.m), C.blasint(p.k), C.blasint(p.n)
		switch p.op {
		case "AB":
			C.cblas_sgemm(C.CblasRowMajor, C.CblasNoTrans, C.CblasNoTrans, m, n, k, 1, a, k, b, n,
				0, c, n)
		case "ATB":
			C.cblas_sgemm(C.CblasRowMajor, C.CblasTrans, C.CblasNoTrans, k, n, m, 1, a, k, b, n,
				0, c, n)
		case "ABT":
			C.cblas_sgemm(C.CblasRowMajor, C.CblasNoTrans, C.CblasTrans, m, k, n, 1, a, n, b, n,
				0, c, k)
		}
	},
}
