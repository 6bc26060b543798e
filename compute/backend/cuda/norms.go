//go:build cuda && cgo && linux

package cuda

import "gdb/compute/backend"

const (
	// normEps is added to variances, and normShare is how much of a batch's statistics those of all
	// batches take over: as on the CPU.
	normEps   = float32(1e-5)
	normShare = float32(0.1)
	// slabRows is SlabRows of the kernels: how many rows are summed one after the other.
	slabRows = 64
)

// slabs is how many slabs rows are cut into.
func slabs(rows int) int { return max(1, (rows+slabRows-1)/slabRows) }

// ColumnSum sums rows.
func (g *gpu) ColumnSum(out, x backend.Tensor) {
	if g.ready(out.Len() == x.Cols, "ColumnSum", out, x) {
		g.columnSumOf(g.at(out), x)
	}
}

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

// LayerNorm normalizes rows.
func (g *gpu) LayerNorm(y, x, gamma, beta, stats backend.Tensor) {
	if g.ready(y.Len() == x.Len() && stats.Len() == 2*x.Rows && gamma.Len() == x.Cols, "LayerNorm",
		y, x, gamma, beta) && x.Cols > 0 {
		g.launch("layer_norm", x.Rows*warpThreads, y, x, gamma, beta, stats, x.Rows, x.Cols,
			normEps)
	}
}

// LayerNormGrad computes the gradients of x, gamma and beta.
func (g *gpu) LayerNormGrad(dx, dgamma, dbeta, dy, x, gamma, stats backend.Tensor) {
	if g.ready(dx.Len() == x.Len() && dy.Len() == x.Len() && dgamma.Len() == x.Cols,
		"LayerNormGrad", dx, dy, x) && x.Cols > 0 {
		g.normSums(dgamma, dbeta, dy, x, stats, 2, 0, 1)
		g.launch("layer_norm_grad", x.Rows*warpThreads, dx, dy, x, gamma, stats, x.Rows, x.Cols)
	}
}

// normSums computes the gradients of gamma and beta. See the kernel norm_grad_sums.
func (g *gpu) normSums(dgamma, dbeta, dy, x, stats backend.Tensor, perRow, perColumn, behind int) {
	count := slabs(x.Rows)
	plain, scaled := g.takeFloats(count*x.Cols), g.takeFloats(count*x.Cols)
	g.launch("norm_grad_sums", count*x.Cols, plain, scaled, dy, x, stats, perRow, perColumn, behind,
		x.Rows, x.Cols, count)
	g.columnSum(g.at(dbeta), plain, count, x.Cols, 1)
	g.columnSum(g.at(dgamma), scaled, count, x.Cols, 1)
}

// BatchNorm normalizes columns.
func (g *gpu) BatchNorm(y, x, gamma, beta, stats backend.Tensor) {
	if !g.ready(y.Len() == x.Len() && stats.Len() == 2*x.Cols && gamma.Len() == x.Cols,
		"BatchNorm", y, x, gamma, beta) {
		return
	}
	if x.Rows == 0 {
		g.Zero(stats)
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
	g.launch("norm_columns", x.Len(), y, x, gamma, beta, mean, inverse, x.Rows, cols, false,
		normEps)
}

// BatchNormGrad computes the gradients of x, gamma and beta.
func (g *gpu) BatchNormGrad(dx, dgamma, dbeta, dy, x, gamma, stats backend.Tensor) {
	if g.ready(dx.Len() == x.Len() && dy.Len() == x.Len() && dgamma.Len() == x.Cols,
		"BatchNormGrad", dx, dy, x) {
		g.normSums(dgamma, dbeta, dy, x, stats, 0, 1, x.Cols)
		g.launch("batch_norm_grad", x.Len(), dx, dy, x, gamma, stats, dgamma, dbeta, x.Rows, x.Cols)
	}
}

// TrackNorm moves running statistics towards those of a batch of at least two rows.
func (g *gpu) TrackNorm(running, stats backend.Tensor, rows int) {
	n := stats.Cols
	if g.ready(running.Len() == 2*n && stats.Len() == 2*n, "TrackNorm", running, stats) &&
		rows >= 2 {
		g.launch("track_norm", n, running, stats, n, rows, normShare, normEps)
	}
}

// NormApply normalizes columns by given statistics.
func (g *gpu) NormApply(y, x, gamma, beta, running backend.Tensor) {
	n := x.Cols
	if g.ready(y.Len() == x.Len() && running.Len() == 2*n && gamma.Len() == n, "NormApply", y, x,
		gamma, beta) && x.Len() > 0 {
		mean := g.at(running)
		g.launch("norm_columns", x.Len(), y, x, gamma, beta, mean, mean+uint64(n)*floatBytes,
			x.Rows, n, true, normEps)
	}
}
