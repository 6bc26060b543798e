//go:build cuda && cgo && linux

package cuda

import (
	"fmt"
	"math"
	"testing"

	"gdb/compute/backend"
)

// halfUlp is the distance of two neighbors of bfloat16 beside their size: sums in another order may
// be rounded to either.
const halfUlp = 1.0 / 128

// halves draws a matrix of bfloat16, of an even number of columns.
func (o *trial) halves(rows, cols int) backend.Tensor {
	x := o.be.Scratch(rows, cols/2).Halved()
	o.be.convert("narrow", x, o.draw(rows, cols))
	return x
}

// wide notes results that are of bfloat16.
func (o *trial) wide(x backend.Tensor) {
	out := o.be.Scratch(x.Rows, x.Cols)
	o.be.convert("widen", out, x)
	o.gives(out)
}

// TestHalves compares operations on bfloat16 with the CPU's.
func TestHalves(t *testing.T) {
	cpu, gpu := mustOpen(t)
	for _, cols := range []int{2, 24, 70} {
		name := fmt.Sprintf("%d columns", cols)
		compareWithin(t, cpu, gpu, 0, name+": values", func(o *trial) { halfValues(o, cols) })
		compareWithin(t, cpu, gpu, halfUlp, name+": ELU", func(o *trial) { halfELU(o, cols) })
		compareWithin(t, cpu, gpu, halfUlp, name+": products",
			func(o *trial) { halfProducts(o, 33, cols) })
		for _, kind := range []string{"empty", "huge", "random"} {
			compareWithin(t, cpu, gpu, halfUlp, name+": "+kind+" lists",
				func(o *trial) { halfSums(o, kind, cols) })
		}
	}
}

// halfValues are operations that give the same bits everywhere.
func halfValues(o *trial, cols int) {
	const rows = 19
	odd := []float32{0, -1e-39, float32(math.Inf(1)), 1.00390625, 1.01171875, -3.4e38, 1e-30, 7}
	x := o.be.Scratch(1, len(odd))
	o.be.Write(x, odd)
	narrow := o.be.Scratch(1, len(odd)/2).Halved()
	o.be.convert("narrow", narrow, x)
	o.wide(narrow)
	bias, y, floats := o.draw(1, cols), o.halves(rows, cols), o.draw(rows, cols)
	drop := backend.Dropout{Rate: 0.4, First: 77, Key: 5}
	for _, a := range []struct {
		name string
		row  tensor
		drop backend.Dropout
	}{{name: "dropout"}, {name: "relu"}, {name: "bias", row: bias},
		{name: "bias-relu", row: bias, drop: drop}, {name: "dropout", drop: drop}} {
		for _, x := range []backend.Tensor{y, floats} {
			out := o.be.Scratch(rows, cols/2).Halved()
			o.be.activate(a.name, out, x, a.row, a.drop)
			o.wide(out)
		}
	}
	for _, mask := range []backend.Tensor{y, floats} {
		out := o.be.Scratch(rows, cols/2).Halved()
		o.be.run("relu-grad", operands{Out: out, In: tensors{o.draw(rows, cols), mask},
			Scalar: 0.25})
		o.wide(out)
	}
	dx := o.draw(rows, cols)
	o.be.ReLUGrad(dx, y, 0.25)
	o.gives(dx)
	part := o.be.Scratch(rows, cols/2).Halved()
	o.be.Copy(part, y)
	o.wide(part)
	part = o.be.Scratch(rows, cols/2).Halved()
	o.be.Columns(part.Flat().View(0, rows, cols/2), y, cols/2)
	o.wide(part.Flat().View(0, rows, cols/2))
}

// halfELU takes ELU, with and without dropout, and its gradient.
func halfELU(o *trial, cols int) {
	const rows = 19
	bias, y, floats := o.draw(1, cols), o.halves(rows, cols), o.draw(rows, cols)
	for _, row := range []tensor{{}, bias} {
		d := backend.Dropout{}
		if row.Len() > 0 {
			d = backend.Dropout{Rate: 0.4, First: 77, Key: 5}
		}
		for _, x := range []backend.Tensor{y, floats} {
			out := o.be.Scratch(rows, cols/2).Halved()
			o.be.activate("elu", out, x, row, d)
			o.wide(out)
		}
		narrow, dx := o.be.Scratch(rows, cols/2).Halved(), o.draw(rows, cols)
		o.be.activate("elu-grad", narrow, dx, y, d)
		o.wide(narrow)
		o.be.activate("elu-grad", dx, dx, y, d)
		o.gives(dx)
	}
}

// halfProducts multiplies two factors of bfloat16, or one.
func halfProducts(o *trial, m, k int) {
	const heads, n = 2, 6
	a, b := o.halves(m, k), o.halves(k, n)
	c := o.draw(m, n)
	o.be.MatMul(c, a, b, true)
	o.be.MatMul(c, a, o.draw(k, n), true)
	o.gives(c)
	narrow := o.be.Scratch(m, n/2).Halved()
	o.be.MatMul(narrow, a, b, false)
	o.wide(narrow)
	o.be.MatMulTB(narrow, a, o.halves(n, k), false)
	o.wide(narrow)
	g, y := o.draw(k, n), o.halves(m, n)
	o.be.MatMulTA(g, a, y, false)
	o.be.MatMulTA(g, a, o.draw(m, n), true)
	o.gives(g)
	c, g = o.draw(m, heads*n), o.draw(k, heads*n)
	x := o.halves(m, heads*k)
	o.be.HeadMul(c, x, o.halves(k, heads*n), heads, true)
	o.gives(c)
	o.be.HeadMulTA(g, x, o.halves(m, heads*n), heads, false)
	o.gives(g)
	c = o.draw(m, heads*n)
	o.be.HeadMulTB(c, x, o.halves(n, heads*k), heads, false)
	o.gives(c)
	sum := o.draw(1, k)
	o.be.ColumnSum(sum, a)
	o.gives(sum)
	sum = o.draw(1, 4)
	o.be.ColumnSum(sum, o.halves(300, 4))
	o.gives(sum)
}

// halfSums are sums over lists of rows of bfloat16, and their gradients.
func halfSums(o *trial, kind string, cols int) {
	const rows, heads = 70, 2
	s := o.lists(kind, rows, true)
	x, arg := o.halves(rows, cols), o.be.Scratch(s.Lists, cols)
	floats, narrow := o.be.Scratch(s.Lists, cols), o.be.Scratch(s.Lists, cols/2).Halved()
	for _, sum := range []func(out backend.Tensor){
		func(out backend.Tensor) { o.be.lists("pull-mean", out, s, x) },
		func(out backend.Tensor) { o.be.lists("pull-sum", out, s, x) },
		func(out backend.Tensor) { o.be.PullMax(out, x, arg, s) },
		func(out backend.Tensor) { o.be.PullDropped(out, x, s, 0.3, 99) },
	} {
		sum(floats)
		o.gives(floats)
		sum(narrow)
		o.wide(narrow)
	}
	dx, dout := o.draw(rows, cols), o.halves(s.Lists, cols)
	o.be.push("push-mean", dx, s, rows/3, dout)
	o.gives(dx)
	o.be.push("push-sum", dx, s, rows, dout)
	o.gives(dx)
	w, out := o.draw(s.Entries, heads), o.draw(s.Lists, heads*cols)
	o.be.heads("pull-weighted", out, s, operands{Heads: heads, Shared: true, Acc: true}, x, w)
	o.gives(out)
	dw, ofHeads := o.be.Scratch(s.Entries, heads), o.halves(s.Lists, heads*cols)
	o.be.heads("entry-dot", dw, s, operands{Heads: heads, Shared: true}, ofHeads, x)
	o.gives(dw)
	o.be.heads("push-weighted", dx, s, operands{Heads: heads, Shared: true, Fresh: rows / 2},
		ofHeads, w)
	o.gives(dx)
	set, src, dst := operands{Heads: 2, Scalar: 0.2}, o.draw(rows, 2), o.draw(s.Lists, 2)
	kept := o.be.Scratch(s.Lists, 8)
	set.Extra = results{kept}
	o.be.heads("attend", floats, s, set, x, src, dst)
	o.gives(floats)
	o.be.heads("attend", narrow, s, set, x, src, dst)
	o.wide(narrow)
	set.Extra, set.Fresh = results{dw}, rows/3
	o.be.heads("attend-to-rows", dx, s, set, o.halves(s.Lists, cols), x, src, kept)
	o.gives(dx, dw)
}
