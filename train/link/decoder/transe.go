package decoder

import "math"

// transE scores an edge by minus the norm of h+r-t (Bordes, Usunier, Garcia-Durán, Weston and
// Yakhnenko, "Translating Embeddings for Modeling Multi-relational Data", section 2).
type transE struct {
	plainForm
	norm int
}

// Measure is minus the distance of a query h+r from a tail.
func (d transE) Measure() Measure {
	if d.norm == 1 {
		return Manhattan
	}
	return Euclid
}

// RelationDim is an entity's.
func (transE) RelationDim(dim int) int { return dim }

// FormDim is an entity's.
func (transE) FormDim(dim int) int { return dim }

// Query is h+r for a tail and t-r for a head.
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

// QueryGrad is that of a sum or a difference.
func (transE) QueryGrad(dx, dform, dq, _, _ []float32, head bool) {
	copy(dx, dq)
	copy(dform, dq)
	if head {
		for i := range dform {
			dform[i] = -dform[i]
		}
	}
}

// Score is minus the norm.
func (d transE) Score(h, r, t []float32) (sum float64) {
	for i := range h {
		v := math.Abs(float64(h[i]) + float64(r[i]) - float64(t[i]))
		if d.norm == 2 {
			v *= v
		}
		sum += v
	}
	if d.norm == 2 {
		sum = math.Sqrt(sum)
	}
	return -sum
}
