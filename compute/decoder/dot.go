package decoder

// dot scores an edge by the product of its ends. It has no relations.
type dot struct{ plainForm }

// Measure returns Dot.
func (dot) Measure() Measure { return Dot }

// RelationDim returns 0, because there are no relations.
func (dot) RelationDim(int) int { return 0 }

// FormDim returns 0.
func (dot) FormDim(int) int { return 0 }

// Query copies the known end.
func (dot) Query(q, x, _ []float32, _ bool) { copy(q, x) }

// QueryGrad copies the gradient of the query.
func (dot) QueryGrad(dx, _, dq, _, _ []float32, _ bool) { copy(dx, dq) }

// Score returns the product of the ends.
func (dot) Score(h, _, t []float32) (sum float64) {
	for i := range h {
		sum += float64(h[i]) * float64(t[i])
	}
	return sum
}
