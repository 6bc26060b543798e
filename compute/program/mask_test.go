package program

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gdb/internal/rng"
)

// maskBench returns a model as a program that masks edges, with masks drawn from 0.2 to 1.2; ok is
// false for a model that takes the largest of lists, which no program masks.
func maskBench(t *testing.T, m Model, order []bool) (b *bench, ok bool) {
	t.Helper()
	defer func() {
		if recover() != nil {
			b, ok = nil, false
		}
	}()
	b = newBench(t, m, Options{})
	b.program = Make(&b.params, m, Options{Layers: 2, Features: testCols, Explain: true,
		Order: order})
	d := b.input.Dense
	for i := range d.Inner() {
		slices.Sort(d.Types[d.NbrOffsets[i]:d.NbrOffsets[i+1]])
	}
	draw := rng.NewStream(9)
	for range d.ReprMap {
		b.input.Mask = append(b.input.Mask, float32(0.2+draw.Float64()))
	}
	return b, true
}

// TestMaskGradients holds the gradients of a mask and of the features against finite differences,
// for all models but those of maxima and in all orders.
func TestMaskGradients(t *testing.T) {
	seen := 0
	for name, m := range inputModels() {
		t.Run(name, func(t *testing.T) {
			for _, order := range orders(newBench(t, m, Options{}).program.Places()) {
				b, ok := maskBench(t, m, order)
				if !ok {
					return
				}
				seen++
				checkInputGradients(t, b, fmt.Sprint(order))
				b.x = nil
				b.loss(t, true)
				if b.program.maskGrad == 0 {
					return
				}
				got := b.read(b.machine.GradMask())
				checkMaskGradients(t, b, got)
			}
		})
	}
	if seen < 20 {
		t.Errorf("%d programs mask edges: most models of the tests should", seen)
	}
}

func checkMaskGradients(t *testing.T, b *bench, got []float32) {
	t.Helper()
	if len(got) != len(b.input.Mask) {
		t.Fatalf("%d gradients of %d masks", len(got), len(b.input.Mask))
	}
	wrong := 0
	for i := range got {
		const h = 1.0 / 256
		old := b.input.Mask[i]
		at := func(m float32) float64 {
			b.input.Mask[i] = m
			return b.loss(t, false)
		}
		want := (at(old+h) - at(old-h)) / (2 * h)
		b.input.Mask[i] = old
		if math.Abs(float64(got[i])-want) > 2e-3+0.01*math.Abs(want) {
			wrong++
		}
	}
	if wrong > len(got)/10 { // a kink between the two points spoils a few
		t.Errorf("%d of %d gradients of the mask are not what differences give\n%s", wrong,
			len(got), b.program)
	}
}

// TestMaskOfOnes: a mask of ones changes nothing, and one of zeros leaves no neighbor.
func TestMaskOfOnes(t *testing.T) {
	for name, m := range testModels {
		t.Run(name, func(t *testing.T) {
			b, ok := maskBench(t, m, nil)
			if !ok {
				return
			}
			for i := range b.input.Mask {
				b.input.Mask[i] = 1
			}
			got := b.loss(t, false)
			b.program = Make(&b.params, m, Options{Layers: 2, Features: testCols})
			if want := b.loss(t, false); math.Abs(got-want) > 1e-5*(1+want) {
				t.Errorf("with a mask of ones the loss is %g, without one %g", got, want)
			}
		})
	}
	b, _ := maskBench(t, testPulled(func(b *Builder, h Value) Value {
		return b.Pull(h, b.Lists(), Mean)
	}), nil)
	clear(b.input.Mask)
	if got := b.loss(t, false); got != 0 {
		t.Errorf("with a mask of zeros means of neighbors give a loss of %g, want 0", got)
	}
}
