//go:build cuda && cgo && linux

package cuda

import (
	"slices"
	"testing"

	"gdb/compute/backend"
	"gdb/compute/program"
	"gdb/internal/mem"
)

// calls does operations one by one.
type calls struct{ backend.Backend }

type (
	tensor   = backend.Tensor
	tensors  = [4]backend.Tensor
	results  = [2]backend.Tensor
	operands = backend.Operands
)

func (c calls) run(name string, o operands) { c.Run(program.Named(name), &o) }

// inPlace does an operation in the place of x.
func (c calls) inPlace(name string, x, y tensor, scalar float32) {
	c.run(name, operands{Out: x, In: tensors{x, y}, Scalar: scalar})
}

func (c calls) product(name string, y, a, b tensor, heads int, acc bool) {
	c.run(name, operands{Out: y, In: tensors{a, b}, Heads: heads, Acc: acc})
}

func (c calls) MatMul(y, a, b tensor, acc bool)   { c.product("matmul", y, a, b, 0, acc) }
func (c calls) MatMulTA(y, a, b tensor, acc bool) { c.product("matmul-ta", y, a, b, 0, acc) }
func (c calls) MatMulTB(y, a, b tensor, acc bool) { c.product("matmul-tb", y, a, b, 0, acc) }
func (c calls) HeadMul(y, a, b tensor, heads int, acc bool) {
	c.product("headmul", y, a, b, heads, acc)
}
func (c calls) HeadMulTA(y, a, b tensor, heads int, acc bool) {
	c.product("headmul-ta", y, a, b, heads, acc)
}
func (c calls) HeadMulTB(y, a, b tensor, heads int, acc bool) {
	c.product("headmul-tb", y, a, b, heads, acc)
}

func (c calls) Bias(x, row tensor)                     { c.inPlace("bias", x, row, 0) }
func (c calls) BiasReLU(x, row tensor)                 { c.inPlace("bias-relu", x, row, 0) }
func (c calls) ReLUGrad(dx, y tensor, rate float32)    { c.inPlace("relu-grad", dx, y, rate) }
func (c calls) ELU(x tensor)                           { c.inPlace("elu", x, tensor{}, 0) }
func (c calls) ELUGrad(dx, y tensor)                   { c.inPlace("elu-grad", dx, y, 0) }
func (c calls) GELU(y, x tensor)                       { c.convert("gelu", y, x) }
func (c calls) GELUGrad(dx, x tensor)                  { c.inPlace("gelu-grad", dx, x, 0) }
func (c calls) LeakyReLU(x tensor, s float32)          { c.inPlace("leaky-relu", x, tensor{}, s) }
func (c calls) LeakyReLUGrad(dx, y tensor, s float32)  { c.inPlace("leaky-relu-grad", dx, y, s) }
func (c calls) Scale(x tensor, s float32)              { c.inPlace("scale", x, tensor{}, s) }
func (c calls) Shift(x tensor, s float32)              { c.inPlace("shift", x, tensor{}, s) }
func (c calls) RowScale(x, f tensor)                   { c.inPlace("row-scale", x, f, 0) }
func (c calls) Add(x, y tensor)                        { c.inPlace("add", x, y, 0) }
func (c calls) ScoresGrad(ds, s tensor, slope float32) { c.inPlace("scores-grad", ds, s, slope) }
func (c calls) Copy(dst, src tensor)                   { backend.Copy(c, dst, src) }
func (c calls) Zero(x tensor)                          { backend.Zero(c, x) }

func (c calls) Dropout(x tensor, d backend.Dropout) {
	c.run("dropout", operands{Out: x, In: tensors{x}, Drop: d})
}

// activate is an activation to a result of bfloat16, with a row or none.
func (c calls) activate(name string, out, x, row tensor, d backend.Dropout) {
	c.run(name, operands{Out: out, In: tensors{x, row}, Drop: d})
}

func (c calls) convert(name string, out, x tensor) {
	c.run(name, operands{Out: out, In: tensors{x}})
}

func (c calls) Columns(out, x tensor, first int) {
	c.run("columns", operands{Out: out, In: tensors{x}, First: first})
}
func (c calls) ColumnsGrad(dx, dout tensor, first int) {
	c.run("columns-grad", operands{Out: dx, In: tensors{dout}, First: first})
}
func (c calls) HeadMean(out, x tensor, heads int) {
	c.run("head-mean", operands{Out: out, In: tensors{x}, Heads: heads})
}
func (c calls) HeadMeanGrad(dx, dout tensor, heads int) {
	c.run("head-mean-grad", operands{Out: dx, In: tensors{dout}, Heads: heads})
}
func (c calls) ColumnSum(out, x tensor) { c.convert("column-sum", out, x) }
func (c calls) TypeRows(out, table, types tensor) {
	c.run("type-rows", operands{Out: out, In: tensors{table, types}})
}
func (c calls) TypeRowsGrad(dtable, dout, types tensor) {
	c.run("type-rows-grad", operands{Out: dtable, In: tensors{dout, types}})
}

func (c calls) norm(name string, y tensor, in tensors, stats tensor) {
	c.run(name, operands{Out: y, In: in, Extra: results{stats}})
}
func (c calls) normGrad(name string, dx, dgamma, dbeta tensor, in ...tensor) {
	c.run(name, operands{Out: dx, In: tensors(in), Extra: results{dgamma, dbeta}})
}

// lists does an operation over lists.
func (c calls) lists(name string, out tensor, s backend.Segments, in ...tensor) {
	o := operands{Out: out, Lists: s}
	copy(o.In[:], in)
	c.run(name, o)
}

// push is lists of a gradient of rows.
func (c calls) push(name string, dx tensor, s backend.Segments, fresh int, in ...tensor) {
	o := operands{Out: dx, Lists: s, Fresh: fresh}
	copy(o.In[:], in)
	c.run(name, o)
}

func (c calls) PullMax(out, x, arg tensor, s backend.Segments) {
	c.run("pull-max", operands{Out: out, In: tensors{x}, Extra: results{arg}, Lists: s})
}
func (c calls) PullDropped(out, x tensor, s backend.Segments, rate float32, key uint64) {
	c.run("pull-mean-dropped", operands{Out: out, In: tensors{x}, Lists: s,
		Drop: backend.Dropout{Rate: rate, Key: key}})
}

// heads does an operation over lists and heads, as o says besides.
func (c calls) heads(name string, out tensor, s backend.Segments, o operands, in ...tensor) {
	o.Out, o.Lists = out, s
	copy(o.In[:], in)
	c.run(name, o)
}

// plain are operations that the device does by their references, each with its reason.
var plain = map[string]string{"type-matmul": onHost, "type-matmul-ta": onHost,
	"type-matmul-tb": onHost, "segment-matmul": onHost, "segment-matmul-ta": onHost,
	"segment-matmul-tb": onHost, "type-bias": onHost,
	"type-bias-relu": onHost, "type-shares": onHost, "spread": onHost, "dots": onHost,
	"compose": onHost, "type-matmul-t": onHost, "fold": onHost, "fold-vectors": onHost,
	"fold-matrices": onHost,
	"mask":          onCPU, "mask-grad": onCPU, "mask-share": onCPU, "norm-apply-grad": onCPU,
	"sparse-matmul": readDense, "sparse-matmul-ta": readDense, "sparse-dropout": readDense}

const (
	onHost    = "models with it are refused on a device"
	onCPU     = "runs are explained on the CPU"
	readDense = "a device reads sparse rows with their zeros"
)

// TestKernels: every other operation of programs has a kernel on the device.
func TestKernels(t *testing.T) {
	for _, name := range program.Names() {
		if deviceKernels[name] == nil && plain[name] == "" {
			t.Errorf("%s is computed by its reference, on the host", name)
		}
	}
}

// TestReference: what has no kernel is done by its reference, on values and lists of a step, in
// float32 and bfloat16.
func TestReference(t *testing.T) {
	g, _ := mustOpenGPU(t, mem.NewBudget(0))
	mustBegin(t, g)
	sum := &backend.Op{Name: "squares of entries", Ref: func(p *backend.Plain) {
		p.Begin()
		p.Entries(func(list, _, row int) {
			for j, v := range p.From[0].Row(row) {
				p.To.Row(list)[j] += v * v
			}
		})
	}}
	s := g.Segments(backend.Lists{Off: []uint32{0, 2, 2, 3}, Idx: []uint32{0, 1, 2}})
	x := g.Host([]float32{1, -2, 3, 4, 5, 6}, 3, 2)
	half := g.Scratch(1, 3).Halved().View(0, 3, 2)
	g.Run(sum, &operands{Out: half, In: tensors{x}, Lists: s})
	calls{g}.inPlace("scale", x, tensor{}, 2) // it is ordered behind
	g.Run(sum, &operands{Out: x, In: tensors{half}, Lists: s})
	got := make([]float32, 6)
	want := []float32{100, 400, 0, 0, 625, 1296}
	if g.Read(got, x); !slices.Equal(got, want) || g.Err() != nil {
		t.Errorf("sums of squares are %v, not %v: %v", got, want, g.Err())
	}
}
