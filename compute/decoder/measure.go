package decoder

import (
	"math"

	"gdb/compute/kernel"
)

// Measure compares a query with a candidate. The larger the score, the likelier the edge.
type Measure int

const (
	// Dot is the product.
	Dot Measure = iota
	// Euclid is minus the Euclidean distance.
	Euclid
	// Manhattan is minus the sum of the absolute differences.
	Manhattan
	// Modulus is minus the sum of the moduli of complex differences.
	Modulus
)

// IsDistance reports whether scores are minus distances, and so never positive.
func (m Measure) IsDistance() bool { return m != Dot }

// distanceLeast is the least Euclidean distance that is used. Below it, the gradient would divide
// the difference of nearly equal numbers, which is mostly rounding, by next to nothing.
const distanceLeast = 1e-3

// kind returns the kernel of a measure that is neither a product nor Euclidean.
func (m Measure) kind() kernel.Distance {
	if m == Manhattan {
		return kernel.Manhattan
	}
	return kernel.Modulus
}

// Matrices compares matrices of queries with matrices of candidates, and holds memory for that. It
// may be used by one goroutine at a time.
type Matrices struct {
	Pool    *kernel.Pool
	Measure Measure
	// D is the number of columns of rows.
	D int

	qSquares, cSquares, sums []float32
}

// Scores writes the scores s(m,n) of the queries q(m,D) with the candidates c(n,D). A score has the
// same bits whatever the other rows are.
func (x *Matrices) Scores(s, q, c []float32, m, n int) {
	switch x.Measure {
	case Dot:
		x.products(s, q, c, m, n)
	case Euclid:
		x.products(s, q, c, m, n)
		x.qSquares = x.squares(x.qSquares, q, m)
		x.cSquares = x.squares(x.cSquares, c, n)
		x.rows(m, n, func(i int) { distancesOf(s[i*n:i*n+n], x.qSquares[i], x.cSquares) })
	default:
		kernel.Distances(x.Pool, s, kernel.Pairs{Kind: x.Measure.kind(), Q: q, C: c, M: m, N: n,
			Cols: x.D})
	}
}

// products computes s = q·cᵀ. With few candidates it adds some, because the kernels for a few
// columns sum in another order, which would change bits: see Scores.
func (x *Matrices) products(s, q, c []float32, m, n int) {
	const least = 9
	if n >= least {
		kernel.GEMMTB(x.Pool, s, q, c, kernel.Shape{M: m, N: x.D, K: n})
		return
	}
	more := make([]float32, least*x.D)
	copy(more, c[:n*x.D])
	wide := make([]float32, m*least)
	kernel.GEMMTB(x.Pool, wide, q, more, kernel.Shape{M: m, N: x.D, K: least})
	for i := range m {
		copy(s[i*n:i*n+n], wide[i*least:])
	}
}

// rows calls fn for each of m rows with n columns, on the workers of the pool.
func (x *Matrices) rows(m, n int, fn func(i int)) {
	part := max(1, (16<<10)/max(1, n))
	x.Pool.Run((m+part-1)/part, func(p int) {
		for i := p * part; i < min(m, (p+1)*part); i++ {
			fn(i)
		}
	})
}

// squares returns the squared norms of rows.
func (x *Matrices) squares(to, rows []float32, n int) []float32 {
	to = append(to[:0], make([]float32, n)...)
	x.rows(n, x.D, func(i int) { to[i] = kernel.SquareSum(rows[i*x.D : (i+1)*x.D]) })
	return to
}

// distancesOf replaces the products of a query with candidates by minus their distances. own and
// squares are the squared norms of the query and of the candidates.
func distancesOf(s []float32, own float32, squares []float32) {
	for j, v := range s {
		square := max(own+squares[j]-2*v, distanceLeast*distanceLeast)
		s[j] = -float32(math.Sqrt(float64(square)))
	}
}

// Grad writes to dq(m,D) and dc(n,D) the gradients of a loss from g(m,n), its gradient in the
// scores s(m,n); g is changed.
//
//lint:parameters the matrices of one product
func (x *Matrices) Grad(dq, dc, g, s, q, c []float32, m, n int) {
	switch x.Measure {
	case Dot:
		kernel.GEMM(x.Pool, dq, g, c, kernel.Shape{M: m, K: n, N: x.D})
		kernel.GEMMTA(x.Pool, dc, g, q, kernel.Shape{M: m, K: n, N: x.D})
	case Euclid:
		x.euclidGrad(dq, dc, g, s, q, c, m, n)
	default:
		kernel.DistancesGrad(x.Pool, dq, dc, g, kernel.Pairs{Kind: x.Measure.kind(), Q: q, C: c,
			M: m, N: n, Cols: x.D})
	}
}

// euclidGrad is, with w = g/distance, Σ w·c - (Σ w)·q for queries and the same for candidates.
//
//lint:parameters the matrices of one product
func (x *Matrices) euclidGrad(dq, dc, g, s, q, c []float32, m, n int) {
	x.sums = append(x.sums[:0], make([]float32, m+n)...)
	qSums, cSums := x.sums[:m], x.sums[m:]
	x.rows(m, n, func(i int) {
		row, scores, sum := g[i*n:i*n+n], s[i*n:i*n+n], float32(0)
		for j, v := range row {
			row[j] = v / -scores[j]
			sum += row[j]
		}
		qSums[i] = sum
	})
	kernel.ColumnSum(x.Pool, cSums, g, m, n, false)
	kernel.GEMM(x.Pool, dq, g, c, kernel.Shape{M: m, K: n, N: x.D})
	kernel.GEMMTA(x.Pool, dc, g, q, kernel.Shape{M: m, K: n, N: x.D})
	less := func(to, rows, sums []float32, n int) {
		x.rows(n, x.D, func(i int) {
			kernel.AddScaledRow(to[i*x.D:(i+1)*x.D], rows[i*x.D:(i+1)*x.D], -sums[i])
		})
	}
	less(dq, q, qSums, m)
	less(dc, c, cSums, n)
}

// Pair returns the score of one query with one candidate.
func (m Measure) Pair(q, c []float32) float32 {
	switch m {
	case Dot:
		return kernel.DotRow(q, c)
	case Euclid:
		sum := float32(0)
		for i, v := range q {
			v -= c[i]
			sum += v * v
		}
		return -float32(math.Sqrt(float64(max(sum, distanceLeast*distanceLeast))))
	}
	var s [1]float32
	kernel.Distances(nil, s[:], kernel.Pairs{Kind: m.kind(), Q: q, C: c, M: 1, N: 1, Cols: len(q)})
	return s[0]
}

// PairGrad adds to dq and writes to dc the gradients of a loss, given g, its gradient with respect
// to the score of a pair.
func (m Measure) PairGrad(dq, dc []float32, g, score float32, q, c []float32) {
	switch m {
	case Dot:
		kernel.AddScaledRow(dq, c, g)
		kernel.TimesRow(dc, q, g)
	case Euclid:
		w := g / -score
		for i, v := range q {
			v = w * (v - c[i])
			dq[i] -= v
			dc[i] = v
		}
	default:
		own := make([]float32, len(q))
		kernel.DistancesGrad(nil, own, dc, []float32{g}, kernel.Pairs{Kind: m.kind(), Q: q, C: c,
			M: 1, N: 1, Cols: len(q)})
		kernel.AddRow(dq, own)
	}
}
