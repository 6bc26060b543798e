package decoder

import (
	"math"

	"gdb/internal/rng"
)

// entityDomain separates the random keys of entities from others.
const entityDomain = 0x656e7469 // "enti"

// InitialEntity draws the initial vector of an entity: normal values with a standard deviation, a
// function of the seed and the entity.
func InitialEntity(row []float32, seed, entity uint64, deviation float64) {
	InitialNormal(row, rng.Key(entityDomain, seed, entity), deviation)
}

// InitialNormal draws independent normal values with a standard deviation.
func InitialNormal(row []float32, key uint64, deviation float64) {
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

// InitialUniform draws uniform values from -most to most.
func InitialUniform(row []float32, key uint64, most float64) {
	s := rng.NewStream(key)
	for i := range row {
		row[i] = float32((2*s.Float64() - 1) * most)
	}
}
