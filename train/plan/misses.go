package plan

import "math"

// missPoints is the number of points of a MissCurve.
const missPoints = 8

// MissCurve holds how many rows a superbatch misses that begins with an empty cache: in all its
// batches, in the first half of them, the first quarter, and so on.
type MissCurve [missPoints]float64

// After returns how many rows the first batches of a superbatch miss; steps is how many batches the
// superbatch has.
func (m *MissCurve) After(batches, steps float64) float64 {
	for i := 1; i < missPoints; i++ {
		if end := steps / math.Exp2(float64(i)); batches >= end {
			return Between(batches, end, 2*end, m[i], m[i-1])
		}
	}
	return m[missPoints-1] * batches / steps * math.Exp2(missPoints-1)
}
