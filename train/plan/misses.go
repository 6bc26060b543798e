package plan

import "math"

// missPoints is how often the misses of a superbatch are known: of all its batches, the first half,
// quarter, ….
const missPoints = 8

// MissCurve is how many rows a superbatch misses that begins with an empty cache: in all batches,
// the first half, quarter, ….
type MissCurve [missPoints]float64

// After is how many rows so many of the batches miss.
func (m *MissCurve) After(batches, steps float64) float64 {
	for i := 1; i < missPoints; i++ {
		if end := steps / math.Exp2(float64(i)); batches >= end {
			return Between(batches, end, 2*end, m[i], m[i-1])
		}
	}
	return m[missPoints-1] * batches / steps * math.Exp2(missPoints-1)
}
