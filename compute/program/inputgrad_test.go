package program

import (
	"fmt"
	"math"
	"testing"
)

// TestInputGradients holds the gradient of the features against finite differences, in every order
// of aggregation and product, and with every pass left out. That it is wanted does not change the
// gradients of parameters.
func TestInputGradients(t *testing.T) {
	for name, m := range inputModels() {
		t.Run(name, func(t *testing.T) {
			places := newBench(t, m, Options{InputGrad: true}).program.Places()
			for _, order := range orders(places) {
				for _, without := range []Passes{{}, {Elements: true, Sums: true, Dead: true}} {
					o := Options{Order: order, Without: without}
					want := newBench(t, m, o).results(t)
					o.InputGrad = true
					b := newBench(t, m, o)
					what := fmt.Sprint(order, without)
					for i, got := range b.results(t) {
						if math.Abs(float64(got-want[i])) > 1e-6 {
							t.Fatalf("%s: value %d is %g, without the features' %g", what, i, got,
								want[i])
						}
					}
					checkInputGradients(t, b, what)
				}
			}
		})
	}
}

// inputModels returns the models of testModels, and some that read the features themselves in
// several ways.
func inputModels() map[string]Model {
	all := map[string]Model{
		"features by rows, lists and dropout": func(b *Builder, x Value) Value {
			x = b.Dropout(x, 0.3)
			mean := b.Pull(x, b.Lists(), Mean)
			h := b.Add(testDense(b, b.Own(x), "own", 4), testDense(b, mean, "n", 4))
			b.Next()
			return testDense(b, b.Pull(h, b.Lists(), Mean), "last", 3)
		},
		"features of the seeds alone": func(b *Builder, x Value) Value {
			h := testDense(b, b.Own(x), "own", 4)
			b.Next()
			return testDense(b, b.Own(h), "last", 3)
		},
		"features in a residual": func(b *Builder, x Value) Value {
			h := b.Add(b.Pull(x, b.Lists(), Sum), b.Own(x))
			b.Next()
			return testDense(b, b.Add(b.Own(h), b.Pull(h, b.Lists(), Mean)), "last", 3)
		},
		"a product of weights, whose gradients come after those of features": func(b *Builder,
			x Value) Value {
			w := testDense(b, testDense(b, b.Param("w", b.Cols(x), 5, Glorot), "v", 4), "u", 4)
			h := b.MatMul(x, w)
			b.Next()
			return testDense(b, b.Own(b.Own(h)), "last", 3).with(b)
		},
	}
	for name, m := range testModels {
		all[name] = m
	}
	return all
}

func checkInputGradients(t *testing.T, b *bench, what string) {
	t.Helper()
	b.loss(t, true)
	got := b.read(b.machine.GradInput())
	b.x = testFeatures()
	worst, zero := 0, true
	for i := range b.x {
		const h = 1.0 / 512
		old := b.x[i]
		at := func(x float32) float64 {
			b.x[i] = x
			return b.loss(t, false)
		}
		want := (at(old+h) - at(old-h)) / (2 * h)
		b.x[i] = old
		zero = zero && got[i] == 0
		// The loss is piecewise smooth: a kink between the two points spoils a few.
		if d := math.Abs(float64(got[i]) - want); d > 2e-3+0.01*math.Abs(want) {
			worst++
		}
	}
	if worst > len(b.x)/50 || zero {
		t.Errorf("%s: %d of %d gradients are not what differences give\n%s", what, worst, len(b.x),
			b.program)
	}
}
