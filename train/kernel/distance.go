package kernel

import "math"

// Distance is one that is summed over the columns of two rows, so that all distances of two
// matrices are no product.
type Distance int

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
	distanceColumns = 16
	// modulusLeast is added to the square of a modulus: where it is zero, its gradient is too.
	modulusLeast = 1e-20
)

// Distances writes to s(m,n) minus the distances of the rows of q(m,d) from those of c(n,d).
func Distances(p *Pool, kind Distance, s, q, c []float32, m, n, d int) {
	s, q, c = s[:m*n], q[:m*d], c[:n*d]
	if n == 0 || d == 0 {
		clear(s)
		return
	}
	distances := level().distances[kind]
	p.Span(m, distanceRows, func(lo, hi int) {
		for j := 0; j < n; j += distanceBlock {
			width := min(distanceBlock, n-j)
			for i := lo; i < hi; i++ {
				distances(s[i*n+j:][:width], q[i*d:i*d+d], c[j*d:(j+width)*d])
			}
		}
	})
}

// DistancesGrad writes to dq(m,d) and dc(n,d) the gradients of a loss from its gradient g(m,n) in
// what Distances writes. A part has some columns of all rows, so no two of them write to the same
// place.
func DistancesGrad(p *Pool, kind Distance, dq, dc, g, q, c []float32, m, n, d int) {
	dq, dc, g, q, c = dq[:m*d], dc[:n*d], g[:m*n], q[:m*d], c[:n*d]
	clear(dq)
	clear(dc)
	columns := d
	if kind == Modulus {
		columns = d / 2
	}
	grad := level().distancesGrad[kind]
	p.Span(columns, distanceColumns, func(lo, hi int) {
		for j := 0; j < n; j += distanceBlock {
			width := min(distanceBlock, n-j)
			for i := range m {
				grad(dq[i*d:i*d+d], dc[j*d:(j+width)*d], g[i*n+j:][:width], q[i*d:i*d+d],
					c[j*d:(j+width)*d], lo, hi)
			}
		}
	})
}

// refManhattan writes minus the distances of q from rows of c.
func refManhattan(s, q, c []float32) {
	d := len(q)
	for j := range s {
		row, sum := c[j*d:j*d+d], float32(0)
		for k, v := range q {
			v -= row[k]
			sum += max(v, -v)
		}
		s[j] = -sum
	}
}

// refManhattanGrad adds the gradients in some columns.
func refManhattanGrad(dq, dc, g, q, c []float32, lo, hi int) {
	d := len(q)
	for j, w := range g {
		row, drow := c[j*d:j*d+d], dc[j*d:j*d+d]
		for k := lo; k < hi; k++ {
			switch diff := q[k] - row[k]; {
			case diff > 0:
				dq[k] -= w
				drow[k] += w
			case diff < 0:
				dq[k] += w
				drow[k] -= w
			}
		}
	}
}

// refModulus writes minus the distances of q from rows of c.
func refModulus(s, q, c []float32) {
	d, half := len(q), len(q)/2
	for j := range s {
		row, sum := c[j*d:j*d+d], float32(0)
		for k := range half {
			x, y := q[k]-row[k], q[half+k]-row[half+k]
			sum += float32(math.Sqrt(float64(x*x + y*y + modulusLeast)))
		}
		s[j] = -sum
	}
}

// refModulusGrad adds the gradients in some complex columns.
func refModulusGrad(dq, dc, g, q, c []float32, lo, hi int) {
	d, half := len(q), len(q)/2
	for j, w := range g {
		row, drow := c[j*d:j*d+d], dc[j*d:j*d+d]
		for k := lo; k < hi; k++ {
			x, y := q[k]-row[k], q[half+k]-row[half+k]
			f := w / float32(math.Sqrt(float64(x*x+y*y+modulusLeast)))
			dq[k] -= f * x
			dq[half+k] -= f * y
			drow[k] += f * x
			drow[half+k] += f * y
		}
	}
}
