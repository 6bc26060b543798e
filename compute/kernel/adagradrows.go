package kernel

import (
	"math"
	"unsafe"
)

// AdagradRows are rows of a table, with the gradients of which each takes a step of Adagrad.
type AdagradRows struct {
	Dim              int
	Weights, Squares []float32 // the table, and its sums of squares
	Rate, Eps        float32

	// Row At[i] of the table changes. Its gradient is the sum of the rows Places[Off[i]:Off[i+1]]
	// of Gradients, each times what Values has at that place; nil is 1. Added to that is the
	// gradient of Cubes[i]/3 times the sum of |w|³; nil is 0.
	At, Off, Places          []uint32
	Gradients, Values, Cubes []float32

	args adagradRowsArgs // of a call, here so that a call allocates nothing
}

// Step takes the steps. Roots and quotients are within some units in the last place. At has no row
// twice.
func (s *AdagradRows) Step() {
	n := len(s.At)
	if n == 0 || s.Dim == 0 {
		return
	}
	end := int(s.Off[n])
	for _, row := range s.At {
		_, _ = s.Weights[int(row)*s.Dim:][:s.Dim], s.Squares[int(row)*s.Dim:][:s.Dim]
	}
	for _, place := range s.Places[s.Off[0]:end] {
		_ = s.Gradients[int(place)*s.Dim:][:s.Dim]
	}
	for i, off := range s.Off[:n] {
		_ = s.Places[off:s.Off[i+1]]
	}
	links := level().links
	if links == nil {
		s.refStep()
		return
	}
	s.args = adagradRowsArgs{weights: &s.Weights[0], squares: &s.Squares[0],
		gradients: unsafe.SliceData(s.Gradients), at: &s.At[0], off: &s.Off[0],
		places: unsafe.SliceData(s.Places), count: n, dim: s.Dim, placesEnd: uintptr(end),
		rate: s.Rate, eps: s.Eps}
	if s.Values != nil {
		s.args.values = unsafe.SliceData(s.Values[:end])
	}
	if s.Cubes != nil {
		s.args.cubes = unsafe.SliceData(s.Cubes[:n])
	}
	links.adagradRows(&s.args)
}

// rowsOnce is how many rows AdagradOnce gives the kernel at a time.
const rowsOnce = 128

// ascending holds the numbers from 0 to rowsOnce.
var ascending = func() (all [rowsOnce + 1]uint32) {
	for i := range all {
		all[i] = uint32(i)
	}
	return all
}()

// AdagradOnce takes a step of Adagrad for these rows of w and s, as AdagradRows does where that is
// faster than Adagrad. X is undefined afterwards.
func (r *Rows) AdagradOnce(p *Pool, w, s []float32, rate, eps float32) {
	if !FusesLinks() {
		r.Adagrad(p, w, s, rate, eps)
		return
	}
	p.Span(len(r.At), rowsOnce, func(lo, hi int) { // each row has one gradient
		n := hi - lo
		step := AdagradRows{Dim: r.Cols, Weights: w, Squares: s, Rate: rate, Eps: eps,
			At: r.At[lo:hi], Off: ascending[:n+1], Places: ascending[:n],
			Gradients: r.X[lo*r.Cols : hi*r.Cols]}
		step.Step()
	})
}

// refStep is the specification of Step.
func (s *AdagradRows) refStep() {
	g := make([]float32, s.Dim)
	for i, row := range s.At {
		clear(g)
		for k := s.Off[i]; k < s.Off[i+1]; k++ {
			value := float32(1)
			if s.Values != nil {
				value = s.Values[k]
			}
			for j, v := range s.Gradients[int(s.Places[k])*s.Dim:][:s.Dim] {
				g[j] += value * v
			}
		}
		cube := float32(0)
		if s.Cubes != nil {
			cube = s.Cubes[i]
		}
		w, squares := s.Weights[int(row)*s.Dim:][:s.Dim], s.Squares[int(row)*s.Dim:][:s.Dim]
		refAdagradCube(w, squares, g, s.Rate, s.Eps, cube)
	}
}

// refAdagradCube is the specification of a step of Adagrad along g, to which the gradient of cube/3
// times the sum of |w|³ is added first.
func refAdagradCube(w, s, g []float32, rate, eps, cube float32) {
	for i, v := range g {
		v += cube * float32(math.Abs(float64(w[i]))) * w[i]
		s[i] += v * v
		w[i] -= rate * v / (float32(math.Sqrt(float64(s[i]))) + eps)
	}
}
