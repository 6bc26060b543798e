package report

import (
	"math"

	"gdb/internal/rng"
)

// pcaSteps bounds the steps of the power iteration, and pcaClose is where it has converged.
const (
	pcaSteps = 200
	pcaClose = 1e-10
)

// principal returns the first two principal components of rows, which it centers: the coordinates
// of each row, and which share of the variance each component has. It iterates over the rows with
// vectors of their width, so that it takes no memory besides.
func principal(rows [][]float32) (coordinates [2][]float64, shares [2]float64) {
	for axis := range coordinates {
		coordinates[axis] = make([]float64, len(rows))
	}
	if len(rows) == 0 || len(rows[0]) == 0 {
		return coordinates, shares
	}
	total := center(rows)
	var found [][]float64
	for axis := range min(2, len(rows[0])) {
		direction, variance := component(rows, found, uint64(axis))
		if total <= 0 || variance <= 0 {
			return coordinates, shares
		}
		found, shares[axis] = append(found, direction), variance/total
		for i, row := range rows {
			coordinates[axis][i] = dot(row, direction)
		}
	}
	return coordinates, shares
}

// center subtracts the mean of each column, and returns the sum of all squares.
func center(rows [][]float32) (total float64) {
	mean := make([]float64, len(rows[0]))
	for _, row := range rows {
		for k, v := range row {
			mean[k] += float64(v) / float64(len(rows))
		}
	}
	for _, row := range rows {
		for k := range row {
			row[k] -= float32(mean[k])
			total += float64(row[k]) * float64(row[k])
		}
	}
	return total
}

// component returns the direction of the largest variance that is orthogonal to those found, by
// power iteration, and the sum of squares along it.
func component(rows [][]float32, found [][]float64, seed uint64) (direction []float64,
	variance float64) {
	draw := rng.NewStream(seed)
	direction = make([]float64, len(rows[0]))
	for k := range direction {
		direction[k] = draw.Float64() - 0.5
	}
	normalize(direction, found)
	next := make([]float64, len(direction))
	for range pcaSteps {
		clear(next)
		for _, row := range rows {
			along := dot(row, direction)
			for k, v := range row {
				next[k] += along * float64(v)
			}
		}
		last := variance
		variance = normalize(next, found)
		direction, next = next, direction
		if variance-last <= pcaClose*variance {
			break
		}
	}
	return direction, variance
}

// normalize takes the directions that were found out of a vector, and makes its length 1. It
// returns the length that it had.
func normalize(v []float64, found [][]float64) (length float64) {
	for _, other := range found {
		along := 0.0
		for k := range v {
			along += v[k] * other[k]
		}
		for k := range v {
			v[k] -= along * other[k]
		}
	}
	for _, x := range v {
		length += x * x
	}
	length = math.Sqrt(length)
	for k := range v {
		v[k] /= max(length, math.SmallestNonzeroFloat64)
	}
	return length
}

func dot(row []float32, v []float64) (sum float64) {
	for k, x := range row {
		sum += float64(x) * v[k]
	}
	return sum
}
