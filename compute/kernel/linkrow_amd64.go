package kernel

// prefetchRows asks for the lines of rows, each of which takes bytes.
//
//go:noescape
func prefetchRows(table *float32, rows *uint32, count int, bytes uintptr)

// productGrad is ProductGrad of n values, at least one; add has the lanes that are added to.
//
//lint:parameters a register for each that the loop steps by
//go:noescape
func productGrad(dx, dAnswer, dr, dq, q, x, r *float32, grad float32, add uint64, n int)

// pairScores is EdgePairs.Scores of one edge at least, of rows of one value at least.
//
//go:noescape
func pairScores(a *pairsArgs)

// pairGrads is EdgePairs.Grads of edges that share negatives, and pairGradsOwn of edges that have
// their own.
//
//go:noescape
func pairGrads(a *pairsArgs)

//go:noescape
func pairGradsOwn(a *pairsArgs)

// adagradRows is AdagradRows.Step of one row at least, of one value at least.
//
//go:noescape
func adagradRows(a *adagradRowsArgs)
