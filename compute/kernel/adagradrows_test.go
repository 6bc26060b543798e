package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// randomAdagradRows are steps of some rows of a table, of which each has up to four gradients.
func randomAdagradRows(r *rand.Rand, rows, dim int, values, cubes bool) *AdagradRows {
	const gradients = 9
	row := func(n int) []float32 { return randomRows(r, 1, n)[0] }
	s := &AdagradRows{Dim: dim, Weights: row((rows + 3) * dim), Squares: row((rows + 3) * dim),
		Rate: 0.1, Eps: 1e-10, Gradients: row(gradients * dim), Off: []uint32{0}}
	for i, v := range s.Squares {
		switch s.Squares[i] = v * v; i % dim % 5 {
		case 0: // a first step
			s.Squares[i] = 0
		case 1:
			s.Weights[i], s.Squares[i] = 0, 0
		case 2:
			s.Squares[i] *= 1e8
		}
	}
	for i := range s.Gradients {
		switch i % dim % 4 { // the same of a column: sums do not cancel
		case 0:
			s.Gradients[i] *= 1e-7
		case 1:
			s.Gradients[i] = 0
		case 2:
			s.Gradients[i] *= 10
		}
	}
	for i, row := range r.Perm(rows + 3)[:rows] {
		s.At = append(s.At, uint32(row))
		for range i % 5 {
			s.Places = append(s.Places, r.Uint32N(gradients))
		}
		s.Off = append(s.Off, uint32(len(s.Places)))
	}
	if values {
		s.Values = row(len(s.Places))
	}
	if cubes {
		s.Cubes = row(rows)
	}
	return s
}

func TestAdagradRows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, dim := range []int{0, 1, 15, 16, 17, 32, 35, 100} {
		for _, rows := range []int{0, 1, 2, 20} {
			for kind := range 4 {
				values, cubes := kind&1 > 0, kind&2 > 0
				t.Run(fmt.Sprint(dim, rows, values, cubes), func(t *testing.T) {
					a := randomAdagradRows(r, rows, dim, values, cubes)
					x, y := clones([][]float32{a.Weights, a.Squares}),
						clones([][]float32{a.Weights, a.Squares})
					b, c := *a, *a
					b.Weights, b.Squares, c.Weights, c.Squares = x[0], x[1], y[0], y[1]
					for range 2 {
						b.Step()
						c.refStep()
					}
					nearRows(t, x, y, 1e-5)
				})
			}
		}
	}
}
