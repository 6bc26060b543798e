package sampletest

import "math"

// ChiSquareBound returns a value that a chi-square variable of dof degrees of freedom exceeds with
// a probability under 1e-6. It uses Wilson and Hilferty's approximation, which is too large for few
// degrees of freedom.
func ChiSquareBound(dof float64) float64 {
	const z = 4.7534
	return dof * math.Pow(1-2/(9*dof)+z*math.Sqrt(2/(9*dof)), 3)
}
