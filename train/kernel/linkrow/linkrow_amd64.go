package linkrow

const hasAssembly = true

// prefetchRows asks for the lines of rows that are so many bytes long.
//
//go:noescape
func prefetchRows(table *float32, rows *uint32, count int, bytes uintptr)

// productGrad is ProductGrad of n values, at least one; add has the lanes that are added to.
//
//go:noescape
func productGrad(dx, dAnswer, dr, dq, q, x, r *float32, grad float32, add uint64, n int)

// adagrad is Adagrad of n values, at least one.
//
//go:noescape
func adagrad(w, s, grad *float32, rate, eps, cube float32, n int)
