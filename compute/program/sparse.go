package program

import (
	"gdb/compute/backend"
	"gdb/compute/kernel"
	"gdb/internal/mem"
	"gdb/internal/sparse"
)

// Features that are mostly zeros come as rows of entries: see package sparse. Products read such
// rows, and a dropout drops entries of them; nothing else does. A model multiplies them before it
// sums over lists, which is the same since both are linear.

var (
	opSparseMatMulTA = define("sparse-matmul-ta", func(o *backend.Operands) bool {
		return o.In[0].Rows == o.In[1].Rows && o.Out.Cols == o.In[1].Cols
	}, func(h *backend.Plain) {
		h.Begin()
		eachEntry(h, func(row int, column uint32, x float32) {
			addTo(h.To.Row(int(column)), h.From[1].Row(row), x)
		})
	}, Kind{accumulates: true, overRows: true, taken: takenBySparse})
	opSparseMatMul = define("sparse-matmul", func(o *backend.Operands) bool {
		return o.In[0].Rows == o.Out.Rows && o.Out.Cols == o.In[1].Cols
	}, func(h *backend.Plain) {
		h.Begin()
		eachEntry(h, func(row int, column uint32, x float32) {
			addTo(h.To.Row(row), h.From[1].Row(int(column)), x)
		})
	}, Kind{accumulates: true, taken: takenBySparse})
	// opSparseDropout has the number of columns as First.
	opSparseDropout = define("sparse-dropout", sameLen, func(h *backend.Plain) {
		for i := range h.To.Rows {
			row := rowOf(h.To, i)
			copy(row, rowOf(h.From[0], i))
			dense := make([]float32, h.First)
			for k := range row.Len() {
				dense[row.Column(k)] = 1
			}
			kernel.Dropout(nil, dense, h.Drop.First+i*h.First, h.Drop.Rate, h.Drop.Key)
			row.Keep(func(column uint32) bool { return dense[column] != 0 })
			row.Scale(1 / (1 - h.Drop.Rate))
		}
	}, Kind{drops: true})
)

// ofSparse are the operations that do to sparse rows what others do to dense ones.
var ofSparse = map[*Kind]*Kind{opMatMul: opSparseMatMul, opMatMulTA: opSparseMatMulTA,
	opDropout: opSparseDropout}

func rowOf(m backend.Matrix, i int) sparse.Row {
	return sparse.Row(mem.View[uint32](mem.BytesOf(m.Row(i))))
}

func eachEntry(h *backend.Plain, fn func(row int, column uint32, x float32)) {
	for i := range h.From[0].Rows {
		row := rowOf(h.From[0], i)
		for k := range row.Len() {
			fn(i, row.Column(k), row.Value(k))
		}
	}
}

func takenBySparse(z sized, _ int) backend.Taken {
	dim := z.rows(1)
	if z.o.kind.overRows {
		dim = z.s.Of(z.p.of(z.o.out).rows)
	}
	return backend.Taken{Once: kernel.SparseWords(kernel.SparseShape{Rows: z.rows(0),
		Words: z.cols(0), Dim: dim})}
}

// fromFeatures reports whether x is the features, a view of them, or what a dropout left of them.
func (p *Program) fromFeatures(x Value) bool {
	x = p.root(x)
	for i := range p.ops {
		if o := &p.ops[i]; o.out == x && o.kind == opDropout {
			return p.root(o.in[0]) == p.features
		}
	}
	return x == p.features
}

// sparseOrder returns the order of aggregation and product that has products of features first.
func (p *Program) sparseOrder(order []bool) []bool {
	places := p.findPlaces()
	all := make([]bool, len(places))
	for i, pl := range places {
		x := p.ops[pl.pull].in[0]
		if pl.transforms {
			x = p.ops[pl.product].in[0]
		}
		all[i] = p.fromFeatures(x) || i < len(order) && order[i]
	}
	return all
}

// takeSparse has the program read features as sparse rows of this many words, and says whether
// all that reads them can.
func (p *Program) takeSparse(words int) bool {
	rows := map[Value]bool{p.features: true}
	for i := range p.ops {
		o := &p.ops[i]
		for k, v := range o.reads() {
			if rows[p.root(v)] && (k > 0 || ofSparse[o.kind] == nil) {
				return false
			}
		}
		if o.kind == opDropout && rows[p.root(o.in[0])] {
			rows[o.out] = true
		}
	}
	for i := range p.ops {
		o := &p.ops[i]
		if len(o.in) > 0 && rows[p.root(o.in[0])] {
			o.kind, o.first = ofSparse[o.kind], p.of(p.features).cols
		}
	}
	for v := range p.values {
		if rows[p.root(Value(v))] {
			p.values[v].cols = words
		}
	}
	return true
}
