// Package initial draws the vectors that link prediction begins with: each a function of a key
// alone, so that rows can be drawn anew wherever they are needed.
package initial

import (
	"math"

	"gdb/internal/rng"
)

// entityDomain keeps the keys of entities apart from others.
const entityDomain = 0x656e7469 // "enti"

// Entity draws the vector of an entity, of Normal values of a deviation, in a training of a seed.
func Entity(row []float32, seed, entity uint64, deviation float64) {
	Normal(row, rng.Key(entityDomain, seed, entity), deviation)
}

// Normal draws independent normal values of a deviation.
func Normal(row []float32, key uint64, deviation float64) {
	s := rng.NewStream(key)
	for i := 0; i < len(row); i += 2 { // Box and Muller
		length := deviation * math.Sqrt(-2*math.Log(1-s.Float64()))
		sin, cos := math.Sincos(2 * math.Pi * s.Float64())
		row[i] = float32(length * cos)
		if i+1 < len(row) {
			row[i+1] = float32(length * sin)
		}
	}
}

// Uniform draws values between minus and plus most.
func Uniform(row []float32, key uint64, most float64) {
	s := rng.NewStream(key)
	for i := range row {
		row[i] = float32((2*s.Float64() - 1) * most)
	}
}
