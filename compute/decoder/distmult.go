package decoder

import "gdb/compute/kernel"

// distMult scores an edge by the sum over i of h[i]·r[i]·t[i] (Yang, Yih, He, Gao and Deng,
// "Embedding Entities and Relations for Learning and Inference in Knowledge Bases", section 3.1).
// The score is the same in both directions.
type distMult struct{ plainForm }

// Measure returns Dot: the product of a query h∘r with a tail.
func (distMult) Measure() Measure { return Dot }

// RelationDim returns dim, as for entities.
func (distMult) RelationDim(dim int) int { return dim }

// FormDim returns dim, as for entities.
func (distMult) FormDim(dim int) int { return dim }

// Query writes x∘r for either end.
func (distMult) Query(q, x, form []float32, _ bool) {
	kernel.ProductRow(q, x[:len(q)], form[:len(q)])
}

// QueryGrad writes the gradients of a product.
func (distMult) QueryGrad(dx, dform, dq, x, form []float32, _ bool) {
	kernel.ProductRow(dx, dq, form[:len(dq)])
	kernel.ProductRow(dform, dq, x[:len(dq)])
}

// Score returns the trilinear product.
func (distMult) Score(h, r, t []float32) (sum float64) {
	for i := range h {
		sum += float64(h[i]) * float64(r[i]) * float64(t[i])
	}
	return sum
}
