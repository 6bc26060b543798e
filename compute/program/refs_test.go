package program

import (
	"fmt"
	"math"
	"testing"

	"gdb/compute/backend"
)

// checkedBackend compares each operation with its reference.
type checkedBackend struct {
	backend.Backend
	t     testing.TB
	lists []backend.Lists
	seen  map[string]bool
}

func (c *checkedBackend) Begin() error {
	c.lists = nil
	return c.Backend.Begin()
}

func (c *checkedBackend) Segments(l backend.Lists) backend.Segments {
	c.lists = append(c.lists, l)
	return c.Backend.Segments(l)
}

func (c *checkedBackend) Run(op *backend.Op, o *backend.Operands) {
	if op.Ref == nil {
		c.Backend.Run(op, o)
		return
	}
	for i := range o.Extra {
		short := *o
		short.Extra[i] = backend.Tensor{}
		if o.Extra[i].Len() > 0 && op.Fits(&short) {
			c.t.Errorf("%s fits without result %d", op.Name, i+1)
		}
	}
	var lists backend.Lists
	if o.Lists.ID < len(c.lists) {
		lists = c.lists[o.Lists.ID]
	}
	want := backend.ReadPlain(c.Backend, o, lists)
	op.Ref(want)
	c.Backend.Run(op, o)
	got := backend.ReadPlain(c.Backend, o, lists)
	c.seen[op.Name] = true
	tolerance := 1e-5
	if o.Out.Half || o.In[0].Half {
		tolerance = 1.0 / 64
	}
	compare := func(what string, got, want backend.Matrix) {
		c.t.Helper()
		size := 1.0
		for _, v := range want.V {
			size = max(size, math.Abs(float64(v)))
		}
		for i, v := range want.V {
			near := math.Abs(float64(v)-float64(got.V[i])) <= tolerance*size
			if !near && math.Float32bits(v) != math.Float32bits(got.V[i]) {
				c.t.Errorf("%s: value %d of %s of %dx%d is %g, its reference gives %g", op.Name, i,
					what, want.Rows, want.Cols, got.V[i], v)
				return
			}
		}
	}
	compare("the result", got.To, want.To)
	for i := range want.More {
		compare(fmt.Sprint("result ", i+1), got.More[i], want.More[i])
	}
	compare("operand 3", got.From[3], want.From[3])
}

// TestReferences holds each operation against its plain reference, in programs of all models, with
// and without half precision, in all orders, and in evaluations.
func TestReferences(t *testing.T) {
	seen := map[string]bool{}
	run := func(t *testing.T, m Model, o Options) {
		b := newBench(t, m, o)
		b.be = &checkedBackend{Backend: b.be, t: t, seen: seen}
		b.machine = NewMachine(b.be, &b.params, nil)
		b.loss(t, true)
		b.program = Make(&b.params, m, Options{Layers: 2, Features: testCols})
		b.loss(t, false)
		half := b.be.Scratch(1, 4).Halved()
		b.be.Write(half, []float32{0, 1, -2, 3, 4, 5.5, 6, 7})
		b.be.Run(Named("widen"), &backend.Operands{Out: b.be.Scratch(1, 8),
			In: [4]backend.Tensor{half}})
		// Layers over whole lists alone have this one.
		x, a := b.be.Scratch(3, 4), b.be.Scratch(2, 2)
		b.be.Write(x, []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
		b.be.Write(a, []float32{1, 2, 3, 4})
		b.be.Run(Named("compose"), &backend.Operands{Out: b.be.Scratch(3, 2),
			In: [4]backend.Tensor{a, x}, Parts: []int{1, 2, 2, 0}})
	}
	models := map[string]Model{"wide": wideLayers, "sage": sageLayers}
	for name, m := range testModels {
		models[name] = m
	}
	for name, m := range models {
		t.Run(name, func(t *testing.T) {
			places := newBench(t, m, Options{}).program.Places()
			for _, order := range orders(places) {
				for _, o := range []Options{{}, {Half: true}, {InPlace: true},
					{FuseAttention: true, Half: true}, {FuseAttention: true},
					{Without: Passes{Elements: true, Sums: true, Dead: true}}} {
					o.Order = order
					run(t, m, o)
				}
			}
			if b, ok := maskBench(t, m, nil); ok {
				b.be = &checkedBackend{Backend: b.be, t: t, seen: seen}
				b.machine = NewMachine(b.be, &b.params, nil)
				b.loss(t, true)
			}
		})
	}
	run(t, sageLayers, Options{Sparse: sparseWords})
	for _, name := range Names() {
		if !seen[name] {
			t.Errorf("no model has the operation %s", name)
		}
	}
}

// wideLayers have products of enough columns for half precision, and what comes between them.
func wideLayers(b *Builder, x Value) Value {
	for l := range 2 {
		at := fmt.Sprint(l)
		h := b.Dropout(b.ELU(b.Bias(testDense(b, x, at+"in", 24), b.Param(at+"e", 1, 24, Zero))),
			0.4)
		h = b.Add(testDense(b, b.Pull(h, b.Lists(), Mean), at+"mean", 24),
			testDense(b, b.Own(h), at+"own", 24))
		h = b.Dropout(b.ReLU(b.Bias(h, b.Param(at+"b", 1, 24, Glorot))), 0.3)
		b.Next()
		x = h
	}
	return testDense(b, x, "out", 3)
}
