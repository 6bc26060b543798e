package decoder

// complEx scores an edge by the real part of the sum over i of h[i]·r[i]·conj(t[i]), over complex
// numbers (Trouillon, Welbl, Riedel, Gaussier and Bouchard, "Complex Embeddings for Simple Link
// Prediction", equation 9).
type complEx struct{ plainForm }

// Measure returns Dot: the product of a query with a candidate, over real and
// imaginary parts alike.
func (complEx) Measure() Measure { return Dot }

// RelationDim returns dim, as for entities.
func (complEx) RelationDim(dim int) int { return dim }

// FormDim returns dim, as for entities.
func (complEx) FormDim(dim int) int { return dim }

// Query writes h·r for a tail and t·conj(r) for a head.
func (complEx) Query(q, x, form []float32, head bool) { rotate(q, x, form, head) }

// QueryGrad writes the gradients of a product of complex numbers.
func (complEx) QueryGrad(dx, dform, dq, x, form []float32, head bool) {
	rotateGrad(dx, dform, dq, x, form, head)
}

// Score returns the real part of the trilinear product.
func (complEx) Score(h, r, t []float32) (sum float64) {
	k := len(h) / 2
	for i := range k {
		a, b := complexAt(h, i), complexAt(r, i)
		c := complexAt(t, i)
		sum += real(a * b * complex(real(c), -imag(c)))
	}
	return sum
}

// complexAt returns complex number i of a row.
func complexAt(x []float32, i int) complex128 {
	return complex(float64(x[i]), float64(x[len(x)/2+i]))
}

// rotate writes the products x·r of complex numbers to q or, if conjugate is set, x·conj(r).
func rotate(q, x, r []float32, conjugate bool) {
	k := len(q) / 2
	qr, qi, xr, xi, rr, ri := q[:k], q[k:][:k], x[:k], x[k:][:k], r[:k], r[k:][:k]
	if conjugate {
		for i := range k {
			qr[i], qi[i] = xr[i]*rr[i]+xi[i]*ri[i], xi[i]*rr[i]-xr[i]*ri[i]
		}
		return
	}
	for i := range k {
		qr[i], qi[i] = xr[i]*rr[i]-xi[i]*ri[i], xr[i]*ri[i]+xi[i]*rr[i]
	}
}

// rotateGrad writes the gradients of rotate with respect to x and r.
func rotateGrad(dx, dr, dq, x, r []float32, conjugate bool) {
	k := len(dq) / 2
	gr, gi, xr, xi, rr, ri := dq[:k], dq[k:][:k], x[:k], x[k:][:k], r[:k], r[k:][:k]
	dxr, dxi, drr, dri := dx[:k], dx[k:][:k], dr[:k], dr[k:][:k]
	if conjugate {
		for i := range k {
			dxr[i], dxi[i] = gr[i]*rr[i]-gi[i]*ri[i], gr[i]*ri[i]+gi[i]*rr[i]
			drr[i], dri[i] = gr[i]*xr[i]+gi[i]*xi[i], gr[i]*xi[i]-gi[i]*xr[i]
		}
		return
	}
	for i := range k {
		dxr[i], dxi[i] = gr[i]*rr[i]+gi[i]*ri[i], gi[i]*rr[i]-gr[i]*ri[i]
		drr[i], dri[i] = gr[i]*xr[i]+gi[i]*xi[i], gi[i]*xr[i]-gr[i]*xi[i]
	}
}
