package decoder

import "math"

// transE scores an edge by minus the norm of h+r-t (Bordes, Usunier, Garcia-Durán, Weston and
// Yakhnenko, "Translating Embeddings for Modeling Multi-relational Data", section 2).
type transE struct {
	plainForm
	norm int
}

// Measure returns Manhattan or Euclid, by the norm: minus the distance of a query h+r from a tail.
func (d transE) Measure() Measure {
	if d.norm == 1 {
		return Manhattan
	}
	return Euclid
}

// RelationDim returns dim, as for entities.
func (transE) RelationDim(dim int) int { return dim }

// FormDim returns dim, as for entities.
func (transE) FormDim(dim int) int { return dim }

// Query writes h+r for a tail and t-r for a head.
func (transE) Query(q, x, form []float32, head bool) {
	x, form = x[:len(q)], form[:len(q)]
	if head {
		for i := range q {
			q[i] = x[i] - form[i]
		}
		return
	}
	for i := range q {
		q[i] = x[i] + form[i]
	}
}

// QueryGrad writes the gradients of a sum or a difference.
func (transE) QueryGrad(dx, dform, dq, _, _ []float32, head bool) {
	copy(dx, dq)
	copy(dform, dq)
	if head {
		for i := range dform {
			dform[i] = -dform[i]
		}
	}
}

// Score returns minus the norm.
func (d transE) Score(h, r, t []float32) float64 {
	return -normOf(d.norm, len(h), func(i int) float64 {
		return math.Abs(float64(h[i]) + float64(r[i]) - float64(t[i]))
	})
}

// normOf returns the norm of order 1 or 2 of n values; size returns the absolute value of the i-th.
func normOf(order, n int, size func(i int) float64) (sum float64) {
	for i := range n {
		v := size(i)
		if order == 2 {
			v *= v
		}
		sum += v
	}
	if order == 2 {
		sum = math.Sqrt(sum)
	}
	return sum
}
