package sampletest

import "math"

// ChiSquareBound is the value that a chi-square variable of dof degrees of freedom exceeds with
// probability under 1e-6 (Wilson and Hilferty's approximation, which is above it for few).
func ChiSquareBound(dof float64) float64 {
	const z = 4.7534
	return dof * math.Pow(1-2/(9*dof)+z*math.Sqrt(2/(9*dof)), 3)
}
