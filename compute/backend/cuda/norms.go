//go:build cuda && cgo && linux

package cuda

import "gdb/compute/backend"

const (
	normEps   = float32(backend.NormEps)
	normShare = float32(backend.NormShare)
	// slabRows is SlabRows of the kernels: how many rows are summed one after the other.
	slabRows = 64
)

// slabs returns how many slabs rows are cut into.
func slabs(rows int) int { return max(1, (rows+slabRows-1)/slabRows) }

// columnSumOf is columnSum of a matrix of either kind.
func (g *gpu) columnSumOf(out uint64, x backend.Tensor) {
	if !x.Half {
		g.columnSum(out, g.at(x), x.Rows, x.Cols, 1)
		return
	}
	count := slabs(x.Rows)
	sums := g.takeFloats(count * x.Cols)
	g.launch("column_sums_half", count*x.Cols, sums, x, x.Rows, x.Cols, count, 1.0)
	g.columnSum(out, sums, count, x.Cols, 1)
}

// columnSum writes the sums of columns, times a factor: those of slabs first, and then the sums of
// these in the same way.
func (g *gpu) columnSum(out, x uint64, rows, cols int, factor float32) {
	for rows > slabRows {
		count := slabs(rows)
		sums := g.takeFloats(count * cols)
		g.launch("column_sums", count*cols, sums, x, rows, cols, count, 1.0)
		x, rows = sums, count
	}
	g.launch("column_sums", cols, out, x, rows, cols, 1, factor)
}

// norms have gamma and beta behind x, and what their gradients need as more results.
var norms = map[string]deviceKernel{
	"layer-norm": func(g *gpu, o *backend.Operands) {
		if x := o.In[0]; x.Cols > 0 {
			g.launch("layer_norm", x.Rows*warpThreads, o.Out, x, o.In[1], o.In[2], o.Extra[0],
				x.Rows, x.Cols, normEps)
		}
	},
	"layer-norm-grad": func(g *gpu, o *backend.Operands) {
		if x := o.In[1]; x.Cols > 0 {
			g.normSums(o, 2, 0, 1)
			g.launch("layer_norm_grad", x.Rows*warpThreads, o.Out, o.In[0], x, o.In[2], o.In[3],
				x.Rows, x.Cols)
		}
	},
	"batch-norm": batchNorm,
	"batch-norm-grad": func(g *gpu, o *backend.Operands) {
		x := o.In[1]
		g.normSums(o, 0, 1, x.Cols)
		g.launch("batch_norm_grad", x.Len(), o.Out, o.In[0], x, o.In[2], o.In[3], o.Extra[0],
			o.Extra[1], x.Rows, x.Cols)
	},
	"norm-apply": func(g *gpu, o *backend.Operands) {
		if x := o.In[0]; x.Len() > 0 {
			mean := g.at(o.In[3])
			g.launch("norm_columns", x.Len(), o.Out, x, o.In[1], o.In[2], mean,
				mean+uint64(x.Cols)*floatBytes, x.Rows, x.Cols, true, normEps)
		}
	},
}

// normSums computes the gradients of gamma and beta, which are the first and the second result
// beside that of x. See the kernel norm_grad_sums.
func (g *gpu) normSums(o *backend.Operands, perRow, perColumn, behind int) {
	dy, x, stats := o.In[0], o.In[1], o.In[3]
	count := slabs(x.Rows)
	plain, scaled := g.takeFloats(count*x.Cols), g.takeFloats(count*x.Cols)
	g.launch("norm_grad_sums", count*x.Cols, plain, scaled, dy, x, stats, perRow, perColumn, behind,
		x.Rows, x.Cols, count)
	g.columnSum(g.at(o.Extra[1]), plain, count, x.Cols, 1)
	g.columnSum(g.at(o.Extra[0]), scaled, count, x.Cols, 1)
}

// batchNorm normalizes columns, and moves running statistics towards those of a batch of at least
// two rows.
func batchNorm(g *gpu, o *backend.Operands) {
	x, stats := o.In[0], o.Extra[0]
	if x.Rows == 0 {
		g.zero(stats)
		return
	}
	cols := x.Cols
	mean := g.at(stats)
	inverse := mean + uint64(cols)*floatBytes
	g.columnSum(mean, g.at(x), x.Rows, cols, 1/float32(x.Rows))
	count := slabs(x.Rows)
	sums := g.takeFloats(count * cols)
	g.launch("column_squares", count*cols, sums, x, mean, x.Rows, cols, count)
	g.columnSum(inverse, sums, count, cols, 1)
	g.launch("inverse_deviation", cols, inverse, cols, x.Rows, normEps)
	g.launch("norm_columns", x.Len(), o.Out, x, o.In[1], o.In[2], mean, inverse, x.Rows, cols,
		false, normEps)
	if x.Rows >= 2 {
		g.launch("track_norm", cols, o.In[3], stats, cols, x.Rows, normShare, normEps)
	}
}
