package kernel

import "math"

const (
	// Manhattan is the sum of |q[i]-c[i]|.
	Manhattan Distance = iota
	// Modulus is the sum of the moduli of q-c, whose complex numbers are stored as a half of real
	// parts and a half of imaginary parts.
	Modulus
)

const (
	// distanceRows are the rows of queries that a part compares with all candidates.
	distanceRows = 16
	// distanceBlock are the candidates whose columns stay in a cache while queries pass by.
	distanceBlock = 64
	// distanceColumns are the columns, or complex numbers, of which a part finds gradients.
	distanceColumns = 64
	// modulusLeast is added to the square of a modulus: where it is zero, its gradient is too.
	modulusLeast = 1e-20
)

// Distances writes to s(m,n) minus the distances of the rows of q(m,d) from those of c(n,d).
func Distances(p *Pool, s []float32, of Pairs) {
	s, of.Q, of.C = s[:of.M*of.N], of.Q[:of.M*of.Cols], of.C[:of.N*of.Cols]
	if of.N == 0 || of.Cols == 0 {
		clear(s)
		return
	}
	distance := distanceOf(of.Kind, of.Cols)
	p.Span(of.M, distanceRows, func(lo, hi int) {
		for j := 0; j < of.N; j += distanceBlock {
			for i := lo; i < hi; i++ {
				for k := j; k < min(j+distanceBlock, of.N); k++ {
					s[i*of.N+k] = -distance(rowOf(of.Q, i, of.Cols), rowOf(of.C, k, of.Cols))
				}
			}
		}
	})
}

// distanceOf is the distance of two rows of a width.
func distanceOf(kind Distance, d int) func(a, b []float32) float32 {
	o, half := level(), d/2
	if kind == Manhattan {
		return o.manhattan
	}
	return func(a, b []float32) float32 { return o.modulus(a[:half], a[half:], b[:half], b[half:]) }
}

// DistancesGrad writes to dq(m,d) and dc(n,d) the gradients of a loss from its gradient g(m,n) in
// what Distances writes. A part has some columns of all rows, so no two of them write to the same
// place.
func DistancesGrad(p *Pool, dq, dc, g []float32, of Pairs) {
	dq, dc, g, of.Q, of.C = dq[:of.M*of.Cols], dc[:of.N*of.Cols], g[:of.M*of.N],
		of.Q[:of.M*of.Cols], of.C[:of.N*of.Cols]
	clear(dq)
	clear(dc)
	o, columns, half := level(), of.Cols, uint64(of.Cols/2)
	if of.Kind == Modulus {
		columns = of.Cols / 2
	}
	p.Span(columns, distanceColumns, func(lo, hi int) {
		for j := 0; j < of.N; j += distanceBlock {
			for i := range of.M {
				own, row := rowOf(dq, i, of.Cols), rowOf(of.Q, i, of.Cols)
				for k := j; k < min(j+distanceBlock, of.N); k++ {
					other, candidate := rowOf(dc, k, of.Cols), rowOf(of.C, k, of.Cols)
					w := g[i*of.N+k]
					if of.Kind == Manhattan {
						o.manhattanGrad(own[lo:hi], other[lo:hi], row[lo:hi], candidate[lo:hi], w)
					} else {
						o.modulusGrad(own[lo:], other[lo:], row[lo:], candidate[lo:], half,
							uint64(hi-lo), w)
					}
				}
			}
		}
	})
}

// refManhattan returns the sum of |a-b|.
func refManhattan(a, b []float32) (sum float32) {
	for i, v := range b {
		v -= a[i]
		sum += max(v, -v)
	}
	return sum
}

// refManhattanGrad is da -= w·sign(a-b) and db += w·sign(a-b).
func refManhattanGrad(da, db, a, b []float32, w float32) {
	for i, v := range b {
		switch diff := a[i] - v; {
		case diff > 0:
			da[i] -= w
			db[i] += w
		case diff < 0:
			da[i] += w
			db[i] -= w
		}
	}
}

// refModulus returns the sum of the moduli of a-b, of which real and imaginary parts are given.
func refModulus(ar, ai, br, bi []float32) (sum float32) {
	for k := range bi {
		x, y := ar[k]-br[k], ai[k]-bi[k]
		sum += float32(math.Sqrt(float64(x*x + y*y + modulusLeast)))
	}
	return sum
}

// refModulusGrad is da -= w·(a-b)/|a-b| and db += w·(a-b)/|a-b| of n complex numbers, whose
// imaginary parts lie half values behind the real ones.
//
//lint:parameters as many as the assembly takes that it specifies
func refModulusGrad(da, db, a, b []float32, half, n uint64, w float32) {
	for k := range n {
		x, y := a[k]-b[k], a[half+k]-b[half+k]
		f := w / float32(math.Sqrt(float64(x*x+y*y+modulusLeast)))
		da[k] -= f * x
		da[half+k] -= f * y
		db[k] += f * x
		db[half+k] += f * y
	}
}
