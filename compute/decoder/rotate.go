package decoder

import (
	"math"
	"math/cmplx"
)

// rotatE scores an edge by minus the distance of h∘r from t over complex numbers, where each r[i]
// has modulus 1: it rotates h[i] by an angle (Sun, Deng, Nie and Tang, "RotatE: Knowledge Graph
// Embedding by Relational Rotation in Complex Space", section 3.2). A relation's learned values are
// its angles. With norm 1 the distance is the sum of the moduli of the differences, as in the
// authors' implementation; with norm 2 it is the root of the sum of their squares.
type rotatE struct{ norm int }

// Measure returns Modulus or Euclid, by the norm: minus the distance of a query h∘r from a tail.
func (d rotatE) Measure() Measure {
	if d.norm == 1 {
		return Modulus
	}
	return Euclid
}

// RelationDim returns dim/2: an angle for each complex number.
func (rotatE) RelationDim(dim int) int { return dim / 2 }

// FormDim returns dim, the width of complex numbers.
func (rotatE) FormDim(dim int) int { return dim }

// Form writes the cosines and sines of the angles.
func (rotatE) Form(form, r []float32) {
	k := len(r)
	for i, angle := range r {
		sin, cos := math.Sincos(float64(angle))
		form[i], form[k+i] = float32(cos), float32(sin)
	}
}

// FormGrad writes the gradients of the angles, from those of their cosines and sines.
func (rotatE) FormGrad(dr, dform, r []float32) {
	k := len(r)
	for i, angle := range r {
		sin, cos := math.Sincos(float64(angle))
		dr[i] = float32(cos)*dform[k+i] - float32(sin)*dform[i]
	}
}

// Query writes h∘r for a tail and t∘conj(r) for a head, since a rotation keeps distances.
func (rotatE) Query(q, x, form []float32, head bool) { rotate(q, x, form, head) }

// QueryGrad writes the gradients of a product of complex numbers.
func (rotatE) QueryGrad(dx, dform, dq, x, form []float32, head bool) {
	rotateGrad(dx, dform, dq, x, form, head)
}

// Score returns minus the distance.
func (d rotatE) Score(h, r, t []float32) float64 {
	return -normOf(d.norm, len(r), func(i int) float64 {
		return cmplx.Abs(complexAt(h, i)*cmplx.Rect(1, float64(r[i])) - complexAt(t, i))
	})
}
